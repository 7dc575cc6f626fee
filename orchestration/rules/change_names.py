"""Names of changes and features: kebab-case, a verb first, unique in their project.

Source: FORMATS ("strict-plan documents"), source document 004 section 7.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

CHANGE_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
MAX_CHANGE_CHARACTERS = 60
WORD = re.compile(r"[a-z0-9]+")
VERBS = frozenset(
    [
        "add",
        "adopt",
        "allow",
        "analyse",
        "analyze",
        "apply",
        "automate",
        "build",
        "change",
        "check",
        "clean",
        "connect",
        "convert",
        "create",
        "cut",
        "define",
        "delete",
        "deploy",
        "design",
        "document",
        "drop",
        "enable",
        "export",
        "extend",
        "extract",
        "fix",
        "generate",
        "handle",
        "harden",
        "implement",
        "import",
        "improve",
        "integrate",
        "introduce",
        "limit",
        "list",
        "load",
        "make",
        "measure",
        "merge",
        "migrate",
        "move",
        "optimise",
        "optimize",
        "port",
        "prepare",
        "prevent",
        "publish",
        "raise",
        "read",
        "rebuild",
        "record",
        "reduce",
        "refactor",
        "remove",
        "rename",
        "render",
        "repair",
        "replace",
        "report",
        "research",
        "restore",
        "retire",
        "review",
        "rewrite",
        "run",
        "save",
        "secure",
        "send",
        "set",
        "show",
        "simplify",
        "sort",
        "speed",
        "split",
        "start",
        "stop",
        "store",
        "support",
        "switch",
        "sync",
        "test",
        "tidy",
        "track",
        "translate",
        "turn",
        "unify",
        "update",
        "upgrade",
        "use",
        "validate",
        "verify",
        "write",
    ]
)
DEFAULT_VERB = "implement"
MAX_WORDS = 5
SKIPPED = frozenset({"a", "an", "the", "of", "to", "for", "and", "in", "on", "with", "please"})


def is_change_id(name: str) -> bool:
    """Whether a name has the form of a change id: kebab-case, two words or more, not too long."""
    return len(name) <= MAX_CHANGE_CHARACTERS and CHANGE_ID.fullmatch(name) is not None


def change_id_fault(name: str) -> str:
    """Say what is wrong with a change id, or nothing."""
    if not is_change_id(name):
        return "must be kebab-case of two words or more, such as add-login-page"
    if name.partition("-")[0] not in VERBS:
        return "must begin with a verb, such as add-login-page"
    return ""


def change_id_of(text: str, *, number: int) -> str:
    """Make a change id from a request; a text without Latin words is named by its number."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().casefold()
    words = [one for one in WORD.findall(plain[:2_000]) if one not in SKIPPED][:MAX_WORDS]
    if words and words[0] not in VERBS:
        words = [DEFAULT_VERB, *words][:MAX_WORDS]
    if len(words) < 2:
        words = [words[0] if words else DEFAULT_VERB, "change", str(number)]
    return "-".join(words)[:MAX_CHANGE_CHARACTERS].strip("-")


def unique_name(name: str, taken: Collection[str]) -> str:
    """Give a name that is free: the name itself, else with -2, -3 and so on behind it."""
    if name not in taken:
        return name
    count = 2
    while f"{name[: MAX_CHANGE_CHARACTERS - 6]}-{count}" in taken:
        count += 1
    return f"{name[: MAX_CHANGE_CHARACTERS - 6]}-{count}"
