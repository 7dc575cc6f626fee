"""Read YAML that people hand in: one document, plain data, and where each value stands.

What could exhaust the machine is refused before it is built: too many bytes, nesting, aliases that
multiply. A fault found later, in the data, can still be given its line.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.events import MappingStartEvent, NodeEvent, SequenceStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orchestration.errors import CountersignError, Fault, Invalid, NotFound, TooLarge

MAX_DEPTH = 50
MAX_YAML_VALUES = 500_000
"""Far beyond the largest plan, 10,000 steps; reading as many takes some seconds."""
EXPANSION = 2
"""Aliases may make a document this many times as large as its limit in bytes."""
# libyaml's parser is some twenty times as fast; the installation may lack it.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlInvalid(Invalid):
    """A text is not the YAML we accept. Its message names the line."""

    code = "yaml_invalid"


@dataclass(frozen=True, slots=True)
class YamlText:
    """A parsed text. Shape: `value` is plain data; `root` keeps the lines."""

    value: object
    root: Node | None

    def line_of(self, path: str) -> int:
        """Give the line of a dotted path, or of the nearest value around it. Units: 1 is first."""
        node, rest = self.root, path
        line = _line(node) if node is not None else 1
        while node is not None and rest:
            node, rest, found = _step_down(node, rest)
            line = found or line
        return line

    def with_lines(self, faults: Iterable[Fault]) -> list[Fault]:
        """Put the line in front of each fault's message."""
        return [
            Fault(path=one["path"], message=f"line {self.line_of(one['path'])}: {one['message']}")
            for one in faults
        ]


def load_yaml(path: Path, *, limit_bytes: int) -> YamlText:
    """Read and parse a YAML file.

    Errors: NotFound; YamlInvalid when it is no regular file (a pipe would never end) or cannot be
    read; those of `parse_yaml`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"There is no file {str(path)!r}.") from None
    except (OSError, ValueError) as error:
        raise YamlInvalid(f"{str(path)!r} cannot be read: {error}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise YamlInvalid(f"{str(path)!r} is not a file")
    with os.fdopen(handle, "rb") as stream:
        data = stream.read(limit_bytes + 1)
    try:
        return parse_yaml(data, limit_bytes=limit_bytes)
    except CountersignError as error:
        # Say which file, as compilers do; the error keeps its class, code and faults.
        error.detail = f"{path.name}, {error.detail}"
        raise


def parse_yaml(data: bytes, *, limit_bytes: int) -> YamlText:
    """Parse one YAML document into plain data.

    Errors: TooLarge; YamlInvalid for invalid UTF-8, bad syntax, a key given twice, a tag that asks
    for more than data, nesting deeper than 50, over 500,000 values, aliases that multiply or refer
    to themselves.
    """
    if len(data) > limit_bytes:
        raise TooLarge(f"the text is larger than {limit_bytes} bytes")
    text = _decode(data)
    try:
        _require_bounded(text)
        root = yaml.compose(text, Loader=LOADER)
        if root is None:
            return YamlText(None, None)
        _require_finite(root, EXPANSION * limit_bytes)
        _require_single_keys(root)
        return YamlText(_Constructor().construct_document(root), root)
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise _invalid(line, "a character that YAML does not allow") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise _invalid(line, said) from None


class _Constructor(SafeConstructor):
    """Plain data only; a value that looks like a number or date but is none gets its line."""

    def construct_object(self, node: Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
        try:
            return super().construct_object(node, deep=deep)
        except ValueError as error:
            raise ConstructorError(None, None, str(error), node.start_mark) from None


def _line(part: Node | yaml.Event) -> int:
    mark = part.start_mark
    return mark.line + 1 if mark is not None else 1


def _invalid(line: int, said: str) -> YamlInvalid:
    return YamlInvalid(f"line {line}: {said}")


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _invalid(line, f"the text is not valid UTF-8 (byte {error.start + 1})") from None


def _require_bounded(text: str) -> None:
    """Count nesting and values while parsing: composing is recursive, and costs far more."""
    depth = values = 0
    for event in yaml.parse(text, Loader=LOADER):
        values += isinstance(event, NodeEvent)
        if values > MAX_YAML_VALUES:
            raise _invalid(_line(event), f"has more than {MAX_YAML_VALUES} values")
        if isinstance(event, SequenceStartEvent | MappingStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _invalid(_line(event), f"is nested deeper than {MAX_DEPTH}")
        elif not isinstance(event, NodeEvent):
            depth -= isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent)


def _require_finite(root: Node, limit: int) -> None:
    """Refuse aliases that would make the document huge, or endless, once written out."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, is_after = stack.pop()
        key = id(node)
        if is_after:
            open_nodes.discard(key)
            sizes[key] = _own_size(node) + sum(sizes[id(one)] for one in _children(node))
            if sizes[key] > limit:
                raise _invalid(_line(node), "its aliases make the document too large")
        elif key in open_nodes:
            raise _invalid(_line(node), "an alias refers to what it stands in")
        elif key not in sizes:
            open_nodes.add(key)
            stack.append((node, True))
            stack.extend((one, False) for one in _children(node) if id(one) not in sizes)


def _own_size(node: Node) -> int:
    return 1 + (len(node.value) if isinstance(node, ScalarNode) else 0)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, SequenceNode):
        yield from node.value


def _require_single_keys(root: Node) -> None:
    """Refuse a key given twice: YAML would silently keep the last one."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.extend(_children(node))
        if isinstance(node, MappingNode):
            first: dict[str, ScalarNode] = {}
            for key, _ in node.value:
                if isinstance(key, ScalarNode) and first.setdefault(key.value, key) is not key:
                    earlier = _line(first[key.value])
                    said = f"the key {key.value!r} is given twice, first in line {earlier}"
                    raise _invalid(_line(key), said)


def _step_down(node: Node, path: str) -> tuple[Node | None, str, int]:
    """Go one part down a dotted path. Shape: the node, the rest of the path, the part's line.

    A key may hold dots itself, so the longest key that fits is taken.
    """
    if isinstance(node, SequenceNode):
        part, _, rest = path.partition(".")
        if part.isdigit() and int(part) < len(node.value):
            below: Node = node.value[int(part)]
            return below, rest, _line(below)
    elif isinstance(node, MappingNode):
        fitting = [
            (key, value)
            for key, value in node.value
            if isinstance(key, ScalarNode) and f"{path}.".startswith(f"{key.value}.")
        ]
        if fitting:
            key, below = max(fitting, key=lambda pair: len(pair[0].value))
            return below, path[len(key.value) + 1 :], _line(key)
    return None, "", 0
