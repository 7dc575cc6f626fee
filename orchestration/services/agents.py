"""Agents and tokens: create, rotate, revoke, and recognise whoever shows one.

A token is `csa_` (agent) or `csh_` (human) and 256 random bits. It is returned once and stored as
its sha-256 only: a fast hash is enough for a secret that nobody can guess, and a slow one would
cost every request.
Source: DESIGN sections 14 ("Conventions") and 16.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from orchestration.errors import Conflict, Fault, Invalid, NotFound, Stale
from orchestration.models import Agent, HumanToken, Project
from orchestration.models.rows import fetch_rows
from orchestration.scopes import DEFAULT_SCOPES, Scope
from orchestration.services.work import Actor, Work, locked, unit_of_work

AGENT_PREFIX = "csa_"
HUMAN_PREFIX = "csh_"
SECRET_BYTES = 32
HINT_CHARACTERS = 12
AGENT_NAME = re.compile(r"[\w.@-]{1,120}\Z")
RESERVED_NAMES = frozenset({"sir", "system", "all", ".", ".."})
"""Names that already mean somebody, everybody or a path, in any case."""
SEEN_EVERY = timedelta(seconds=30)
"""How often a request notes that its agent is there; each note is a write."""


def create_agent(
    *,
    name: str,
    actor: Actor,
    scopes: Sequence[str] = DEFAULT_SCOPES,
    projects: Iterable[Project] = (),
) -> tuple[Agent, str]:
    """Create an agent and return it with its token, which nobody sees again.

    Without projects it sees every project, also those that come later.
    Errors: Invalid for a bad name or an unknown scope, Conflict when the name is taken, also by
    one that differs only by case.
    """
    _require_name(name)
    wanted = parse_scopes(scopes)
    token = new_token(AGENT_PREFIX)
    with unit_of_work(actor) as work:
        try:
            with transaction.atomic():
                agent = Agent.objects.create(
                    name=name,
                    folded_name=name.casefold(),
                    scopes=wanted,
                    token_hash=token_hash(token),
                    token_hint=token[:HINT_CHARACTERS],
                )
        except IntegrityError as error:
            standing = Agent.objects.filter(folded_name=name.casefold()).first()
            taken = standing.name if standing is not None else name
            raise Conflict(f"there is an agent {taken!r} already", code="name_taken") from error
        limited_to = list(projects)
        agent.projects.set(limited_to)
        _record(work, agent, "created", {"projects": [row.slug for row in limited_to]})
    return agent, token


def _require_name(name: str) -> None:
    detail = "An agent's name is 1 to 120 letters, digits, '-', '_', '.' or '@'."
    if AGENT_NAME.match(name):
        if name.casefold() not in RESERVED_NAMES:
            return
        detail = f"The name {name!r} is reserved."
    message = f"{name!r} is not a name of an agent"
    raise Invalid(detail, errors=[Fault(path="name", message=message)])


def change_agent(
    *, agent_id: int, scopes: Sequence[str], projects: Iterable[Project], actor: Actor
) -> Agent:
    """Change what an agent may do and which projects it sees; without any it sees every project.

    Errors: NotFound; Invalid for an unknown scope or none. A repeat changes nothing.
    """
    wanted = parse_scopes(scopes)
    with unit_of_work(actor) as work:
        agent = _lock_agent(agent_id)
        limited_to = {row.pk: row.slug for row in projects}
        stood = dict(agent.projects.values_list("pk", "slug"))
        if wanted == agent.scopes and stood == limited_to:
            return agent
        before = {"scopes": agent.scopes, "projects": sorted(stood.values())}
        agent.scopes = wanted
        work.touch(agent, "scopes")
        agent.projects.set(limited_to)
        _record(work, agent, "changed", {"projects": sorted(limited_to.values())}, before=before)
    return agent


def rotate_agent_token(
    *, agent_id: int, actor: Actor, seen_hint: str | None = None
) -> tuple[Agent, str]:
    """Give an agent a new token; the old one ends at once. A revoked agent comes back by it.

    Errors: NotFound; Stale when `seen_hint` does not begin the token that stands, so that a form
    sent twice does not end the token it showed the first time.
    """
    token = new_token(AGENT_PREFIX)
    with unit_of_work(actor) as work:
        agent = _lock_agent(agent_id)
        if seen_hint is not None and seen_hint != agent.token_hint:
            raise Stale("this agent got another token meanwhile")
        agent.token_hash = token_hash(token)
        agent.token_hint = token[:HINT_CHARACTERS]
        agent.revoked_at = None
        work.touch(agent, "token_hash", "token_hint", "revoked_at")
        _record(work, agent, "token_rotated", {})
    return agent, token


def revoke_agent(*, agent_id: int, actor: Actor) -> Agent:
    """End an agent's token. What it holds expires by itself; a repeat changes nothing.

    Errors: NotFound.
    """
    with unit_of_work(actor) as work:
        agent = _lock_agent(agent_id)
        if agent.revoked_at is None:
            agent.revoked_at = work.now
            work.touch(agent, "revoked_at")
            _record(work, agent, "revoked", {})
    return agent


def create_human_token(
    *, user_id: int, actor: Actor, can_decide: bool = False
) -> tuple[HumanToken, str]:
    """Create a personal token of a human and return it with its secret, shown once.

    Errors: NotFound.
    """
    token = new_token(HUMAN_PREFIX)
    with unit_of_work(actor) as work:
        user = get_user_model().objects.filter(pk=user_id).first()
        if user is None:
            raise NotFound("There is no such person.")
        row = HumanToken.objects.create(
            user=user,
            token_hash=token_hash(token),
            token_hint=token[:HINT_CHARACTERS],
            can_decide=can_decide,
        )
        _record_human(work, row, "created")
    return row, token


def revoke_human_token(*, token_id: int, actor: Actor) -> HumanToken:
    """End a personal token; a repeat changes nothing. Errors: NotFound."""
    with unit_of_work(actor) as work:
        row = locked(HumanToken.objects.filter(pk=token_id)).first()
        if row is None:
            raise NotFound("There is no such token.")
        token: HumanToken = row
        if token.revoked_at is None:
            token.revoked_at = work.now
            work.touch(token, "revoked_at")
            _record_human(work, token, "revoked")
    return token


def parse_scopes(scopes: Iterable[str]) -> list[str]:
    """Check scopes and give them once each, in their own order.

    Errors: Invalid naming every unknown one; Invalid when there is none.
    """
    given = list(dict.fromkeys(scopes))
    known = {scope.value for scope in Scope}
    faults = [
        Fault(path=f"scopes.{at}", message=f"{one!r} is none of {', '.join(sorted(known))}")
        for at, one in enumerate(given)
        if one not in known
    ]
    if not given:
        faults.append(Fault(path="scopes", message="needs at least one"))
    if faults:
        raise Invalid("The scopes are not valid.", errors=faults)
    return [scope.value for scope in Scope if scope.value in given]


def new_token(prefix: str) -> str:
    """Make a token: its prefix says whose it is, the rest is 256 random bits."""
    return prefix + secrets.token_urlsafe(SECRET_BYTES)


def token_hash(token: str) -> str:
    """Hash a token the way it is stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def agent_of_token(token: str) -> Agent | None:
    """Recognise an agent by its token; None for an unknown or revoked one."""
    wanted = token_hash(token)
    rows = fetch_rows(Agent, "token_hash = %s AND revoked_at IS NULL", [wanted])
    if not rows or not secrets.compare_digest(rows[0].token_hash, wanted):
        return None
    return rows[0]


def human_token_of(token: str) -> HumanToken | None:
    """Recognise a personal token of somebody who may sign in; None for any other."""
    wanted = token_hash(token)
    rows = fetch_rows(HumanToken, "token_hash = %s AND revoked_at IS NULL", [wanted])
    if not rows or not secrets.compare_digest(rows[0].token_hash, wanted):
        return None
    users = fetch_rows(User, "id = %s AND is_active", [rows[0].user_id])
    if not users:
        return None
    rows[0].user = users[0]
    return rows[0]


def note_agent_seen(agent: Agent) -> None:
    """Note that an agent is there, at most once in half a minute."""
    now = timezone.now()
    if agent.last_seen_at is not None and now - agent.last_seen_at < SEEN_EVERY:
        return
    with unit_of_work(Actor(f"agent:{agent.name}")):
        Agent.objects.filter(pk=agent.pk).update(last_seen_at=now)
    agent.last_seen_at = now


def _lock_agent(agent_id: int) -> Agent:
    agent: Agent | None = locked(Agent.objects.filter(pk=agent_id)).first()
    if agent is None:
        raise NotFound("There is no such agent.")
    return agent


def _record(
    work: Work,
    agent: Agent,
    what: str,
    facts: dict[str, object],
    *,
    before: dict[str, object] | None = None,
) -> None:
    work.record(
        f"agent.{what}",
        subject=f"agent:{agent.pk}",
        project_id=None,
        before=before,
        after={
            "name": agent.name,
            "scopes": agent.scopes,
            "token_hint": agent.token_hint,
            **facts,
        },
    )


def _record_human(work: Work, row: HumanToken, what: str) -> None:
    work.record(
        f"human_token.{what}",
        subject=f"human_token:{row.pk}",
        project_id=None,
        after={
            "user": row.user.get_username(),
            "can_decide": row.can_decide,
            "token_hint": row.token_hint,
        },
    )
