"""Scopes: which paths a task may touch, and whether one scope or text lies inside another.

A scope is a list of paths, directories or simple globs. Entries that are free text are kept for
people and never compared. An empty scope, or one of free text only, is unrestricted.
Source: DESIGN section 4, rule 14, and section 11.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from orchestration.contracts.paths import normalise_path
from orchestration.contracts.plan import PlanStep
from orchestration.errors import Fault, WorkspaceError

ROOT = "."
ANY_DIRECTORIES = "**"
PATH_LIKE = re.compile(r"[A-Za-z0-9_.@+*?-]+|\S*/\S*|\S+\.[A-Za-z0-9]{1,8}")
"""A plain file name in ASCII, or one word of any script with a slash or an extension."""
GLOB = re.compile(r"[*?]")
NOT_WORDS = re.compile(r"[\W_]+")


def folded_words(text: str) -> str:
    """Fold what makes no difference: case, width, white space and punctuation."""
    return NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def is_path(entry: str) -> bool:
    """Say whether a scope entry is a path; anything else is free text."""
    return PATH_LIKE.fullmatch(entry.strip()) is not None


def scope_paths(scope: Iterable[str]) -> tuple[str, ...]:
    """Give the paths of a scope in their one spelling, each once.

    Errors: WorkspaceError naming every entry that is absolute or climbs out with `..`.
    """
    paths: dict[str, None] = {}
    faults: list[Fault] = []
    for at, entry in enumerate(scope):
        if not is_path(entry):
            continue
        try:
            paths[_base_of_tree(normalise_path(entry))] = None
        except ValueError as broken:
            faults.append(Fault(path=f"scope.{at}", message=str(broken)))
    if faults:
        raise WorkspaceError("A path of the scope leaves the workspace.", errors=faults)
    return tuple(paths)


def outside_scope(paths: Iterable[str], scope: Iterable[str]) -> list[str]:
    """Find the paths that a scope does not cover. Errors: WorkspaceError as `scope_paths`."""
    allowed = scope_paths(scope)
    asked = scope_paths(paths)
    if not allowed:
        return []
    return [path for path in asked if not any(_covers(entry, path) for entry in allowed)]


def within_scope(paths: Iterable[str], scope: Iterable[str]) -> bool:
    """Say whether every path lies inside the scope. Errors: WorkspaceError as `scope_paths`."""
    return not outside_scope(paths, scope)


def proper_subset(child: Iterable[str], parent: Iterable[str]) -> bool:
    """Say whether a declared scope is strictly smaller than its parent's.

    A declared scope of free text only cannot be compared and passes; an empty one is unrestricted,
    so it is never smaller. Errors: WorkspaceError as `scope_paths`.
    """
    declared = list(child)
    smaller, larger = scope_paths(declared), scope_paths(parent)
    if not smaller:
        return bool(declared)
    if not larger:
        return ROOT not in smaller
    return within_scope(smaller, larger) and not within_scope(larger, smaller)


def scope_of_step(step: PlanStep) -> tuple[str, ...]:
    """Give a step's scope: the declared one, else what it writes and makes."""
    return step.scope or step.written_paths


def _base_of_tree(path: str) -> str:
    """`src/**` and `src/` mean the same directory; `**` means everything."""
    while path.endswith("/**"):
        path = path[:-3]
    return ROOT if path == "**" else path


def _covers(entry: str, path: str) -> bool:
    if entry in (ROOT, path) or path.startswith(f"{entry}/"):
        return True
    if GLOB.search(entry) is None:
        return False
    return _matches([*entry.split("/"), ANY_DIRECTORIES], path.split("/"), ANY_DIRECTORIES, _name)


def _name(pattern: str, name: str) -> bool:
    """Match one directory or file name. A wider wildcard never fits into a narrower one."""
    return name != ANY_DIRECTORIES and _matches(pattern, name, "*", _character)


def _character(pattern: str, character: str) -> bool:
    return pattern == character or (pattern == "?" and character != "*")


def _matches(
    pattern: Sequence[str], items: Sequence[str], star: str, same: Callable[[str, str], bool]
) -> bool:
    """Match a pattern in which `star` stands for any number of items.

    Only the last star is ever tried again, so the cost is at most pattern times items: a hostile
    glob cannot make it explode, as it could with a regular expression.
    """
    at = place = 0
    retry: tuple[int, int] | None = None
    while place < len(items):
        if at < len(pattern) and pattern[at] == star:
            retry = (at, place)
            at += 1
        elif at < len(pattern) and same(pattern[at], items[place]):
            at, place = at + 1, place + 1
        elif retry is None:
            return False
        else:
            retry = (retry[0], retry[1] + 1)
            at, place = retry[0] + 1, retry[1]
    return all(part == star for part in pattern[at:])
