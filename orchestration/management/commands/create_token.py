"""Create a personal token: `manage.py create_token USERNAME [--allow-decide] [--quiet]`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User

from orchestration.access import HumanRole, role_of
from orchestration.errors import Forbidden, NotFound
from orchestration.management.operator import OperatorCommand, errors_in_words, operator_actor
from orchestration.services.agents import create_human_token


class Command(OperatorCommand):
    """Create a token that stands for a person and print it, once."""

    help = "Create a personal token and print it once; it decides only with --allow-decide."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the person and whether the token may decide."""
        parser.add_argument("username")
        parser.add_argument("--allow-decide", action="store_true", help="it may decide for Sir")
        parser.add_argument("--quiet", action="store_true", help="print the token alone")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create it. Errors: CommandError for somebody unknown, or who may not decide."""
        name, can_decide = options["username"], options["allow_decide"]
        with errors_in_words():
            user = User.objects.filter(username=name).first()
            if user is None:
                raise NotFound(f"There is nobody called {name!r}.")
            if can_decide and role_of(user) is not HumanRole.SIR:
                raise Forbidden(f"{name} may not decide: only the role sir does.")
            _, token = create_human_token(
                user_id=user.pk, actor=operator_actor(), can_decide=can_decide
            )
        if options["quiet"]:
            self.stdout.write(token)
            return
        may = "may read and decide" if can_decide else "may read"
        self.stdout.write(f"A token of {name}; it {may}. Shown only now: {token}")
