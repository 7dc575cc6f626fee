"""The twelve profiles: rank, what they may spawn, whether they only read.

Layer is rank; depth is nesting and belongs to the task. The matrix binds agents' spawn calls; the
engine itself may place any profile. Source: DESIGN section 11, source document 004.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

CAPITAL = re.compile(r"(?=[A-Z])")
SUBCODING = "SubCoding"
TDD_AGENTS = ("TddRunAndFix", "TddTestAndFix", "TddTestDesign", "TddTestPrepare")


@dataclass(frozen=True, slots=True)
class Profile:
    """One role. `hands_in_code` is false for a profile that only plans and distributes."""

    name: str
    layer: int
    may_spawn: tuple[str, ...] = ()
    read_only: bool = False
    hands_in_code: bool = True

    @property
    def prompt(self) -> str:
        """Name the template of its own prompt: `profile_strict_plan` for StrictPlan."""
        return f"profile{CAPITAL.sub('_', self.name).lower()}"


_ALL = (
    Profile("StrictPlan", 0, ("QuickExplore", SUBCODING), hands_in_code=False),
    Profile("StrictSpec", 0, ("Requirement", "DesignAgent", "TaskPlan", SUBCODING)),
    Profile("Requirement", 1),
    Profile("DesignAgent", 1),
    Profile("TaskPlan", 1),
    Profile(SUBCODING, 1, ("QuickExplore", *TDD_AGENTS)),
    Profile("QuickExplore", 2, read_only=True, hands_in_code=False),
    *(Profile(name, 2) for name in TDD_AGENTS),
    Profile("TaskCheck", 2),
)
PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _ALL})


def known_roles() -> frozenset[str]:
    """Names of the twelve profiles."""
    return frozenset(PROFILES)


def may_spawn(
    parent_role: str | None, child_role: str | None, *, subcoding_may_spawn: bool = True
) -> bool:
    """Say whether an agent in one role may spawn a task in another.

    A task without a role may spawn tasks without a role, and only those. Unknown roles may nothing.
    `subcoding_may_spawn` is the policy's switch.
    """
    if parent_role is None or child_role is None:
        return parent_role is None and child_role is None
    parent = PROFILES.get(parent_role)
    if parent is None or (parent_role == SUBCODING and not subcoding_may_spawn):
        return False
    return child_role in parent.may_spawn
