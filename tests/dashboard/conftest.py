"""People with their clients, and projects whose work has come to a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import translation

from orchestration.models import Decision, Project, Task
from orchestration.services.audit import seal_events
from orchestration.services.knowledge import PageText, write_experience, write_page
from orchestration.services.work import SYSTEM
from tests.factories import (
    child,
    drive,
    new_agent,
    new_project,
    new_sir,
    open_decision_of,
    step,
    submit_plan,
)

PATCH = """--- a/greeting.txt
+++ b/greeting.txt
@@ -1 +1 @@
-helo
+hello
"""
CHECK = "grep -q hello greeting.txt"
FIX = {"description": "Spell the `greeting` right.", "patch": PATCH}


@pytest.fixture(autouse=True)
def _language_ends_with_the_test() -> Iterator[None]:
    yield
    translation.deactivate()


def person(name: str, role: str) -> User:
    """Create a person with a role, or without one."""
    user: User = get_user_model().objects.create_user(username=name, password="a good password")
    if role:
        user.groups.add(Group.objects.get_or_create(name=role)[0])
    return user


def signed_in(user: User) -> Client:
    """Return a client with the person's session."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def sir(db: None) -> User:
    return new_sir()


@pytest.fixture
def sir_client(sir: User) -> Client:
    return signed_in(sir)


@pytest.fixture
def viewer_client(db: None) -> Client:
    return signed_in(person("vera", "viewer"))


@pytest.fixture
def stranger_client(db: None) -> Client:
    return signed_in(person("stan", ""))


@dataclass(slots=True)
class Waiting:
    """A plan of three steps whose second waits for Sir with a patch."""

    project: Project
    root: Task

    @property
    def decision(self) -> Decision:
        """Read its open decision afresh."""
        return open_decision_of(self.project)

    @property
    def step(self) -> Task:
        """Read the step that waits."""
        return child(self.root, "2")


def make_waiting(slug: str = "", **rest: Any) -> Waiting:
    """Drive a plan to its Medium defect."""
    project = new_project(slug)
    root = submit_plan(
        project,
        step("1", run=["sh -c 'echo helo > greeting.txt'"], expected_artifacts=["greeting.txt"]),
        step(
            "2", run=[CHECK], after=["1"], on_failure={"severity": "medium", "fix": FIX}, **rest
        ),
        step("3", after=["2"]),
        text="Say hello in the right way",
    )  # fmt: skip
    drive(project)
    seal_events()
    return Waiting(project, root)


@pytest.fixture
def waiting(sir: User) -> Waiting:
    return make_waiting("hello")


def furnish(held: Waiting) -> Waiting:
    """Give a project what the remaining pages show: an agent, a wiki page and an experience."""
    new_agent("an-agent")
    write_page(project=held.project, name="a-page", text=PageText("x"), actor=SYSTEM)
    write_experience(project=held.project, title="x", body="", actor=SYSTEM)
    return held


def verdict_form(decision: Decision, verdict: str, **rest: str) -> dict[str, str]:
    """Fill the form of a card as it was shown."""
    shown = {"version": str(decision.version), "digest": decision.digest, "verdict": verdict}
    return {**shown, "reason": "", "confirmed": "", **rest}
