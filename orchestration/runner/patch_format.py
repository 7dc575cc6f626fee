"""Read a unified diff strictly: every line must have its place, or the patch is refused.

The `unidiff` library, which pages use to show a diff, skips what it does not understand. That is
right for showing and wrong for applying: a hunk whose counts are off would lose lines in silence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from orchestration.contracts.paths import path_fault
from orchestration.errors import Fault, Invalid

MAX_PATCH_BYTES = 8 * 1024 * 1024
MAX_FILES = 1000
HUNK_HEADER = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
NO_NEWLINE = b"\\ "
"""How the marker of a missing final newline starts; the words after it depend on the language."""
NOWHERE = b"/dev/null"
MODES = {b"100644": 0o644, b"100755": 0o755}
UNREADABLE = {
    b"Binary files ": "is a binary change; only text can be patched",
    b"GIT binary patch": "is a binary change; only text can be patched",
    b"copy from ": "copies a file; write the copy out as a new file",
}
GIT_FIELD = re.compile(
    rb"(old mode |new mode |deleted file mode |new file mode |rename from |rename to |index "
    rb"|similarity index |dissimilarity index )(.+)$"
)
QUOTED = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
ESCAPES = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


@dataclass(frozen=True)
class Hunk:
    """One change: `before` becomes `after`. Each line holds its end, where it has one."""

    number: int
    old_start: int
    new_start: int
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]

    @property
    def position(self) -> int:
        """Give the index of the first line in the old file, counted from 0."""
        return self.old_start - 1 if self.before else self.old_start

    def reversed(self) -> Hunk:
        """Make the hunk that undoes this one."""
        return Hunk(self.number, self.new_start, self.old_start, self.after, self.before)


@dataclass(frozen=True)
class FilePatch:
    """The change of one file. `old_path` is None for a new file, `new_path` for a deleted one."""

    old_path: str | None
    new_path: str | None
    mode: int | None
    hunks: tuple[Hunk, ...]

    @property
    def path(self) -> str:
        """Name the file the way a person would."""
        return self.new_path or self.old_path or ""


def refuse(message: str, path: str = "patch") -> NoReturn:
    """Raise the error of a malformed patch."""
    raise Invalid(
        f"The patch cannot be read: {message}.",
        code="patch_invalid",
        errors=[Fault(path=path, message=message)],
    )


def parse_patch(patch_text: str) -> tuple[FilePatch, ...]:
    """Read a unified diff, plain or from git. Errors: Invalid, code `patch_invalid`."""
    try:
        data = patch_text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        refuse("it is not valid Unicode")
    if len(data) > MAX_PATCH_BYTES:
        refuse(f"it is larger than {MAX_PATCH_BYTES} bytes")
    files = _Reader(data).read()
    if not files:
        refuse("it holds no change of a file")
    if len(files) > MAX_FILES:
        refuse(f"it changes more than {MAX_FILES} files")
    _require_each_file_once(files)
    return tuple(files)


def _require_each_file_once(files: Sequence[FilePatch]) -> None:
    seen: set[str] = set()
    for file in files:
        for path in {file.old_path, file.new_path} - {None}:
            if path in seen:
                refuse(f"{path} is changed twice", str(path))
            seen.add(str(path))


class _Reader:
    """Walk through the lines of a patch."""

    def __init__(self, data: bytes) -> None:
        # only \n ends a line of a patch; \r is content, and so are the ends that str knows
        self.lines = data.split(b"\n")
        if self.lines[-1] == b"":
            self.lines.pop()
        self.index = 0

    @property
    def line(self) -> bytes | None:
        """Give the current line, or None at the end."""
        return self.lines[self.index] if self.index < len(self.lines) else None

    def read(self) -> list[FilePatch]:
        """Read every file; text before the first is a message, text after it is a fault."""
        files: list[FilePatch] = []
        while (line := self.line) is not None:
            if line.startswith(b"diff --git "):
                files.append(self._read_git_file())
            elif self._is_file_header():
                files.append(self._read_plain_file())
            elif line.rstrip(b"\r ") == b"--" and files:
                break  # the signature of a mailed patch
            elif (files and line.strip()) or line.startswith(b"@@"):
                refuse(f"line {self.index + 1} belongs to no hunk (do the counts of @@ match?)")
            else:
                self.index += 1
        return files

    def _is_file_header(self) -> bool:
        following = self.lines[self.index + 1] if self.index + 1 < len(self.lines) else b""
        return (self.line or b"").startswith(b"--- ") and following.startswith(b"+++ ")

    def _is_marker(self) -> bool:
        return (self.line or b"").startswith(NO_NEWLINE)

    def _read_plain_file(self) -> FilePatch:
        old, new = self._read_names()
        old_path, new_path = _decode_paths(old, new)
        if old_path and new_path and old_path != new_path:
            refuse(f"{old_path} and {new_path} differ; a rename needs a git header", new_path)
        hunks = self._read_hunks(new_path or old_path or "")
        if not hunks:
            refuse("it has a header and no hunk", new_path or old_path or "patch")
        return FilePatch(old_path, new_path, None, hunks)

    def _read_names(self) -> tuple[bytes, bytes]:
        old, new = self.lines[self.index][4:], self.lines[self.index + 1][4:]
        self.index += 2
        return _name_of(old), _name_of(new)

    def _read_git_file(self) -> FilePatch:
        header = self.lines[self.index].rstrip(b"\r")
        self.index += 1
        fields = self._read_git_fields()
        if self._is_file_header():
            old, new = self._read_names()
        else:
            old, new = _names_of_git_header(header, fields)
        if (b"new file mode " in fields) != (old == NOWHERE):
            refuse(f"line {self.index} contradicts its git header about a new file")
        if (b"deleted file mode " in fields) != (new == NOWHERE):
            refuse(f"line {self.index} contradicts its git header about a deleted file")
        old_path, new_path = _decode_paths(old, new)
        path = new_path or old_path or "patch"
        if old_path and new_path and old_path != new_path and b"rename to " not in fields:
            refuse(f"{old_path} and {new_path} differ without a rename", path)
        file = FilePatch(old_path, new_path, _mode_of(fields, path), self._read_hunks(path))
        if old_path == new_path and not file.hunks and file.mode is None:
            refuse("it has a header and changes nothing", path)
        return file

    def _read_git_fields(self) -> dict[bytes, bytes]:
        """Read the extended header lines of git. Shape: value by key, the key with its space."""
        fields: dict[bytes, bytes] = {}
        while (line := self.line) is not None and not line.startswith((b"--- ", b"@@", b"diff ")):
            for start, reason in UNREADABLE.items():
                if line.startswith(start):
                    refuse(f"line {self.index + 1} {reason}")
            match = GIT_FIELD.match(line.rstrip(b"\r"))
            if match is None:
                break
            fields[match[1]] = match[2]
            self.index += 1
        return fields

    def _read_hunks(self, path: str) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        while (line := self.line) is not None and line.startswith(b"@@"):
            match = HUNK_HEADER.match(line)
            if match is None:
                refuse(f"line {self.index + 1} is no hunk header", path)
            self.index += 1
            old_start, old_count, new_start, new_count = (
                int(1 if group is None else group) for group in match.groups()
            )
            hunk = self._read_body(len(hunks) + 1, (old_start, old_count), (new_start, new_count))
            if hunks and hunk.position < hunks[-1].position + len(hunks[-1].before):
                refuse(f"hunk {hunk.number} overlaps the one before it", path)
            hunks.append(hunk)
        return tuple(hunks)

    def _read_body(self, number: int, old: tuple[int, int], new: tuple[int, int]) -> Hunk:
        before: list[bytes] = []
        after: list[bytes] = []
        last: list[list[bytes]] = []
        while len(before) < old[1] or len(after) < new[1] or self._is_marker():
            line = self.line
            if line is None:
                refuse(f"hunk {number} ends before its counts are reached")
            if self._is_marker():
                if not last:
                    refuse(f"line {self.index + 1} marks the end of no line")
                for side in last:
                    side[-1] = side[-1].removesuffix(b"\n")
                last = []
            else:
                last = _sides(line, before, after, self.index + 1)
                for side in last:
                    side.append(line[1:] + b"\n")
            self.index += 1
        if len(before) != old[1] or len(after) != new[1]:
            refuse(f"hunk {number} holds more lines than its header counts")
        return Hunk(number, old[0], new[0], tuple(before), tuple(after))


def _sides(
    line: bytes, before: list[bytes], after: list[bytes], line_number: int
) -> list[list[bytes]]:
    """Tell which sides of a hunk a line belongs to; an empty line is an empty line of context."""
    match line[:1]:
        case b" " | b"":
            return [before, after]
        case b"-":
            return [before]
        case b"+":
            return [after]
    refuse(f"line {line_number} starts with neither space, + nor -")


def _mode_of(fields: dict[bytes, bytes], path: str) -> int | None:
    """Read the file mode; refuse symlinks, submodules and whatever else is no plain file."""
    wanted = None
    for key in (b"old mode ", b"deleted file mode ", b"new file mode ", b"new mode "):
        if key in fields:
            if fields[key] not in MODES:
                refuse(f"mode {fields[key].decode('ascii', 'replace')} is no plain file", path)
            wanted = MODES[fields[key]] if key.startswith(b"new") else None
    index_mode = fields.get(b"index ", b"").partition(b" ")[2]
    if index_mode and index_mode not in MODES:
        refuse(f"mode {index_mode.decode('ascii', 'replace')} is no plain file", path)
    return wanted


def _name_of(text: bytes) -> bytes:
    """Take the name out of a --- or +++ line: without time stamp, quotes and carriage return."""
    name = text.rstrip(b"\r").partition(b"\t")[0]
    if not name.startswith(b'"'):
        return name.rstrip(b" ")
    return _unquote(name)


def _unquote(name: bytes) -> bytes:
    """Undo git's quoting of unusual names."""
    if len(name) < 2 or not name.endswith(b'"'):
        refuse("a quoted name does not end")

    def plain(match: re.Match[bytes]) -> bytes:
        code = match[1]
        number = int(code, 8) if len(code) == 3 else ESCAPES[code[0]]
        return bytes([number & 0xFF])

    return QUOTED.sub(plain, name[1:-1])


def _names_of_git_header(header: bytes, fields: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """Find both names where git wrote no --- and +++: renames, modes and empty files."""
    if b"rename from " in fields and b"rename to " in fields:
        names = [fields[b"rename from "], fields[b"rename to "]]
        old, new = (_unquote(name) if name.startswith(b'"') else name for name in names)
        return b"a/" + old, b"b/" + new
    both = header.removeprefix(b"diff --git ")
    old, new = both[: len(both) // 2], both[len(both) // 2 + 1 :]
    if old.startswith(b'"'):
        old, new = _unquote(old), _unquote(new)
    if old[:2] != b"a/" or new[:2] != b"b/" or old[2:] != new[2:]:
        refuse("a git header does not say which file it means")
    return (
        NOWHERE if b"new file mode " in fields else old,
        NOWHERE if b"deleted file mode " in fields else new,
    )


def _decode_paths(old: bytes, new: bytes) -> tuple[str | None, str | None]:
    """Take a/ and b/ off where both sides have them, and refuse what is no path inside."""
    sides = ((old, b"a/"), (new, b"b/"))
    has_prefixes = all(name == NOWHERE or name.startswith(prefix) for name, prefix in sides)
    paths = [
        None if name == NOWHERE else _checked_path(name[2:] if has_prefixes else name)
        for name, _ in sides
    ]
    if paths == [None, None]:
        refuse("a file comes from nowhere and goes nowhere")
    return paths[0], paths[1]


def _checked_path(name: bytes) -> str:
    try:
        path = name.decode("utf-8")
    except UnicodeDecodeError:
        refuse(f"the file name {name!r} is not UTF-8")
    broken = path_fault(path)
    if broken is not None:
        refuse(broken, path)
    parts = path.split("/")
    if any(part in ("", ".") for part in parts):
        refuse(f"{path!r} is not written in its one spelling", path)
    if any(part.lower() == ".git" for part in parts):
        refuse(f"{path!r} lies in a git directory, which no patch may change", path)
    return path
