"""Commands as documents write them: one argv, never a shell.

Source: FORMATS ("Verification command"), DESIGN section 8 ("Commands on our machine").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field, StrictFloat, StrictInt, StrictStr, field_validator, model_validator

from orchestration.contracts.documents import Document, fault
from orchestration.contracts.paths import WorkspacePath

MAX_COMMAND_SECONDS = 86_400
MAX_ARGUMENTS = 1_000
NEEDS_CARE = re.compile(r"[\"'\\|&;<>`\n\r]|\$\(")
PIECE = re.compile(r"""[^\s"'\\]+|'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\[\s\S]|\s+|["'\\]""")
"""Plain characters, a quoted part, one escaped character, white space, or a quote left open."""
ESCAPED_IN_QUOTES = re.compile(r'\\(["\\])')
EXPANSION = re.compile(r"`|\$\(")
OPENERS = MappingProxyType(
    {"'": "a quote is left open", '"': "a quote is left open", "\\": "it ends in a backslash"}
)
OPERATOR_WORD = re.compile(r"(?:[0-9]*[|&;<>]+|&>)")
"""How a word that only a shell understands begins: `|`, `&&`, `2>&1`, `>out`."""
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class VerificationCommand(Document):
    """One command: what to run, where, for how long, and what counts as success.

    Shape: accepted as text (split without a shell), `{cmd, …}` or `{argv, …}`; kept as `argv`.
    """

    argv: Annotated[tuple[StrictStr, ...], Field(max_length=MAX_ARGUMENTS)]
    cwd: WorkspacePath | None = None
    timeout_seconds: Annotated[StrictFloat, Field(gt=0, le=MAX_COMMAND_SECONDS)] | None = None
    expect_exit_code: Annotated[StrictInt, Field(ge=0, le=255)] = 0
    expect_stdout_contains: StrictStr | None = None

    @model_validator(mode="before")
    @classmethod
    def accept_text(cls, value: Any) -> Any:
        """Turn a plain string, or `cmd`, into `argv`."""
        if isinstance(value, str):
            return {"argv": _argv(value)}
        if isinstance(value, Mapping) and "cmd" in value:
            if "argv" in value:
                raise fault("command", "has both 'cmd' and 'argv'; give one of them")
            rest = {key: held for key, held in value.items() if key != "cmd"}
            command = value["cmd"]
            return {**rest, "argv": _argv(command) if isinstance(command, str) else command}
        if not isinstance(value, Mapping):
            raise fault("command", "must be text or an object with 'cmd' or 'argv'")
        if "argv" not in value:
            raise fault("command", "needs 'cmd' or 'argv'")
        return value

    @field_validator("argv")
    @classmethod
    def require_program(cls, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Require a first word that can be a program."""
        if not argv or not argv[0].strip():
            raise fault("command", "names no program")
        return argv

    @property
    def text(self) -> str:
        """The command as a person would type it."""
        return shlex.join(self.argv)


def split_command(text: str) -> list[str]:
    """Split a command line into argv by the quoting rules of a shell, without a shell.

    Errors: ValueError, a sentence, when it is empty, a quote is open, or only a shell could run it.
    """
    if not NEEDS_CARE.search(text):
        words = text.split()
        shell = None
    else:
        words, shell = _scan(text.strip())
    if not words:
        raise ValueError("is an empty command")
    if shell is None and ASSIGNMENT.match(words[0]):
        shell = words[0]
    if shell is not None:
        raise ValueError(
            f"{shell!r} needs a shell, and commands run without one: write one program with its "
            "arguments for each command"
        )
    return words


def _argv(text: str) -> list[str]:
    try:
        return split_command(text)
    except ValueError as broken:
        raise fault("command", str(broken)) from None


def _scan(text: str) -> tuple[list[str], str | None]:
    """Split into words and find the first one that only a shell understands.

    Shape: beside each word its bare form is built, in which quoted characters read `_`, so that a
    quoted `|` is no operator. Double quotes still expand in a shell: their markers stay visible.
    """
    words: list[str] = []
    shell: str | None = None
    word: list[str] = []
    bare: list[str] = []
    for piece in chain(PIECE.findall(text), " "):
        if piece[0].isspace():
            if word:
                words.append("".join(word))
                shell = shell or _shell_word("".join(bare), words[-1])
                word, bare = [], []
            if "\n" in piece or "\r" in piece:
                shell = shell or "a line break"
            continue
        held, shown = _unquote(piece)
        word.append(held)
        bare.append(shown)
    return words, shell


def _unquote(piece: str) -> tuple[str, str]:
    if piece[0] == "'" and len(piece) > 1:
        return piece[1:-1], "_"
    if piece[0] == '"' and len(piece) > 1:
        expands = "".join(EXPANSION.findall(piece))
        return ESCAPED_IN_QUOTES.sub(r"\1", piece[1:-1]), "_" + expands
    if piece[0] == "\\" and len(piece) > 1:
        return piece[1:], "_"
    if piece in OPENERS:
        raise ValueError(f"cannot be split into words: {OPENERS[piece]}")
    return piece, piece


def _shell_word(bare: str, word: str) -> str | None:
    if OPERATOR_WORD.match(bare) or bare.endswith((";", "&", "|")) or EXPANSION.search(bare):
        return word
    return None
