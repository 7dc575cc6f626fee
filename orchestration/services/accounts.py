"""People's accounts: Sir's first one, and the two roles as Django groups.

Source: DESIGN section 9 ("Who"), section 19.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from orchestration.access import HumanRole
from orchestration.errors import Conflict, Invalid
from orchestration.services.work import Actor, unit_of_work

PASSWORD_BYTES = 12


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account just made. Shape: `generated_password` is empty when one was given."""

    user: User
    generated_password: str


def ensure_roles() -> None:
    """Make the two groups where they are missing."""
    for role in HumanRole:
        Group.objects.get_or_create(name=role.value)


def ensure_sir(*, username: str, password: str, actor: Actor) -> NewAccount | None:
    """Make Sir's account, with a generated password when none is given; None when it exists.

    An account that exists keeps its password and its groups: a person may have changed them.
    Errors: Invalid for a name that cannot be a user name.
    """
    ensure_roles()
    if User.objects.filter(username=username).exists():
        return None
    try:
        return create_person(username=username, password=password, role=HumanRole.SIR, actor=actor)
    except Conflict:
        # Another web process of the same installation was first.
        return None


def create_person(*, username: str, password: str, role: HumanRole, actor: Actor) -> NewAccount:
    """Create a person's account in one of the two roles.

    Errors: Invalid for a bad name; Conflict when the name is taken.
    """
    generated = "" if password else secrets.token_urlsafe(PASSWORD_BYTES)
    user = User(username=username)
    user.set_password(password or generated)
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        said = "; ".join(error.messages)
        raise Invalid(f"{username!r} cannot be a user name: {said}") from None
    with unit_of_work(actor) as work:
        try:
            with transaction.atomic():
                user.save()
        except IntegrityError:
            raise Conflict(f"the user {username!r} exists already", code="name_taken") from None
        user.groups.add(Group.objects.get_or_create(name=role.value)[0])
        work.record(
            "account.created",
            subject=f"user:{user.pk}",
            project_id=None,
            after={"username": username, "role": role.value},
        )
    return NewAccount(user, generated)
