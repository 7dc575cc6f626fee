"""Take a token back: `manage.py revoke_token NAME_OR_HINT [--rotate] [--quiet]`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from orchestration.errors import Invalid, NotFound
from orchestration.management.operator import OperatorCommand, errors_in_words, operator_actor
from orchestration.models import Agent, HumanToken
from orchestration.services.agents import revoke_agent, revoke_human_token, rotate_agent_token


class Command(OperatorCommand):
    """End an agent's token by its name, or a personal one by its first characters."""

    help = "Take a leaked token back; --rotate gives the agent a new one at once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take whose token, and whether to give a new one."""
        parser.add_argument("name", help="an agent's name, or how a personal token begins")
        parser.add_argument("--rotate", action="store_true", help="print a new token of the agent")
        parser.add_argument("--quiet", action="store_true", help="print the new token alone")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Revoke it. Errors: CommandError when nothing is called so."""
        name, actor = options["name"], operator_actor()
        with errors_in_words():
            agent = Agent.objects.filter(name=name).first()
            if agent is not None and options["rotate"]:
                _, token = rotate_agent_token(agent_id=agent.pk, actor=actor)
                said = token if options["quiet"] else f"The new token of {name}, once: {token}"
            elif agent is not None:
                revoke_agent(agent_id=agent.pk, actor=actor)
                said = f"The token of {name} is revoked."
            else:
                row = _personal(name)
                revoke_human_token(token_id=row.pk, actor=actor)
                said = f"The token {row.token_hint}… is revoked."
        self.stdout.write(said)


def _personal(start: str) -> HumanToken:
    """Find the one personal token that begins so. Errors: NotFound; Invalid when several do."""
    rows = list(HumanToken.objects.filter(token_hint__startswith=start[:12], revoked_at=None)[:2])
    if not rows or not start:
        raise NotFound(f"No agent is called {start!r} and no personal token begins so.")
    if len(rows) > 1:
        raise Invalid(f"Several tokens begin with {start!r}: give more of it.")
    return rows[0]
