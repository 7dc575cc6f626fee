"""Faults of documents that people and agents hand in, in the reader's language.

Shape: patterns for `engine_texts`; `yaml` is what `yaml_words` says in words.
Source: contracts/documents.py, plan.py, master_list.py, commands.py, paths.py, yaml_text.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

FORMAT_TEXTS: Mapping[str, str | StrPromise] = {
    "The master task list is not valid; nothing was changed.": _(
        "The master task list is not valid; nothing was changed."
    ),
    "The plan is not valid.": _("The plan is not valid."),
    "is required": _("is required"),
    "must be text": _("must be text"),
    "must not be empty": _("must not be empty"),
    "must be a whole number": _("must be a whole number"),
    "must be a number": _("must be a number"),
    "must be a finite number": _("must be a finite number"),
    "must be true or false": _("must be true or false"),
    "must be a list": _("must be a list"),
    "must be an object": _("must be an object"),
    "must name its time zone": _("must name its time zone"),
    "must be an object of tasks by key, at least one": _(
        "must be an object of tasks by key, at least one"
    ),
    "must be text or a whole number": _("must be text or a whole number"),
    "must be text or an object with 'cmd' or 'argv'": _(
        "must be text or an object with “cmd” or “argv”"
    ),
    "must be a path or an object with 'path' or 'name'": _(
        "must be a path or an object with “path” or “name”"
    ),
    "has both 'cmd' and 'argv'; give one of them": _("has both “cmd” and “argv”; give one of them"),
    "needs 'cmd' or 'argv'": _("needs “cmd” or “argv”"),
    "needs 'path' or 'name'": _("needs “path” or “name”"),
    "a quote is left open": _("a quote is left open"),
    "it ends in a backslash": _("it ends in a backslash"),
    "names no program": _("names no program"),
    "is an empty command": _("is an empty command"),
    "is an empty key": _("is an empty key"),
    "is an empty path": _("is an empty path"),
    "is nested too deeply": _("is nested too deeply"),
    "contains a control character": _("contains a control character"),
    "contains a NUL character": _("contains a NUL character"),
    "contains half a surrogate pair, which is not valid Unicode": _(
        "contains half a surrogate pair, which is not valid Unicode"
    ),
    "a character that YAML does not allow": _("a character that YAML does not allow"),
    "its aliases make the document too large": _("its aliases make the document too large"),
    "an alias refers to what it stands in": _("an alias refers to what it stands in"),
}
YAML_TEXTS: Mapping[str, str | StrPromise] = {
    "while parsing a block mapping": _("in a mapping"),
    "while parsing a flow mapping": _("in a mapping in braces"),
    "while parsing a block collection": _("in a list"),
    "while parsing a flow sequence": _("in a list in brackets"),
    "while scanning a simple key": _("in a key"),
    "while scanning a quoted scalar": _("in a quoted text"),
    "while scanning a block scalar": _("in a text of several lines"),
    "while scanning for the next token": _("here"),
    "while parsing a node": _("here"),
    "while parsing a flow node": _("here"),
    "while scanning a plain scalar": _("in a text without quotes"),
    "found a tab character that violates indentation": _("a tab; indent with spaces"),
    "found a tab character where an indentation space is expected": _("a tab; indent with spaces"),
    "while scanning an alias": _("in an alias"),
    "while scanning an anchor": _("in an anchor"),
    "did not find expected key": _("a key was expected; look at the indentation"),
    "did not find expected '-' indicator": _("a “-” was expected; look at the indentation"),
    "did not find expected ',' or ']'": _("a “,” or “]” is missing"),
    "did not find expected ',' or '}'": _("a “,” or “}” is missing"),
    "did not find expected node content": _("a value was expected"),
    "did not find expected alphabetic or numeric character": _("a letter or digit was expected"),
    "could not find expected ':'": _("a “:” is missing"),
    "found unexpected end of stream": _("the text ends too early"),
    "found character that cannot start any token": _(
        "a character that cannot begin a value, like a tab or @"
    ),
    "mapping values are not allowed in this context": _("a “:” cannot stand here; quote the text"),
    "block sequence entries are not allowed in this context": _("a “-” cannot stand here"),
    "found unknown escape character": _("an unknown character after “\\”"),
    "found undefined alias": _("an alias that names nothing"),
}
"""What libyaml and PyYAML say; anything else stays in their words."""

FORMAT_PATTERNS: Sequence[tuple[str, str | StrPromise]] = (
    (r"line (?P<n>\d+): (?P<why>.+)", _("line %(n)s: %(why)s")),
    (
        r"must be at most (?P<n>\d+) characters?",
        ngettext_lazy("must be at most %(n)s character", "must be at most %(n)s characters", "n"),
    ),
    (
        r"must have at least (?P<n>\d+) (?:entries|entry)",
        ngettext_lazy("must have at least %(n)s entry", "must have at least %(n)s entries", "n"),
    ),
    (
        r"must have at most (?P<n>\d+) (?:entries|entry)",
        ngettext_lazy("must have at most %(n)s entry", "must have at most %(n)s entries", "n"),
    ),
    (r"must be more than (?P<least>\S+)", _("must be more than %(least)s")),
    (r"must be at least (?P<least>\S+)", _("must be at least %(least)s")),
    (r"must be at most (?P<most>\S+)", _("must be at most %(most)s")),
    (r"must be one of (?P<names>.+)", _("must be one of %(names)s")),
    (
        r"must be 1 to (?P<most>\d+) printable characters",
        _(
            "must be 1 to %(most)s printable characters",
        ),
    ),
    (
        r"a key is 1 to (?P<most>\d+) printable characters",
        _(
            "a key is 1 to %(most)s printable characters",
        ),
    ),
    (
        r"has (?P<size>\d+) bytes; at most (?P<most>\d+) are allowed",
        _(
            "has %(size)s bytes; at most %(most)s are allowed",
        ),
    ),
    (
        r"has (?P<size>\d+) steps; a plan has 1 to (?P<most>\d+)",
        _(
            "has %(size)s steps; a plan has 1 to %(most)s",
        ),
    ),
    (r"has more than (?P<most>\d+) values", _("has more than %(most)s values")),
    (r"has more than (?P<most>\d+) tasks", _("has more than %(most)s tasks")),
    (r"is nested deeper than (?P<most>\d+)", _("is nested deeper than %(most)s")),
    (
        r"is a (?P<type>\w+), which JSON does not have; put it in quotes",
        _(
            "is a %(type)s, which JSON does not have; put it in quotes",
        ),
    ),
    (r"key (?P<key>'.*'|\".*\"|\S+) (?P<why>must be text|contains .+)", _("key %(key)s: %(why)s")),
    (r"unknown key (?P<key>.+)", _("unknown key %(key)s")),
    (
        r"the key (?P<key>.+) is given twice, first in line (?P<first>\d+)",
        _(
            "the key %(key)s is given twice, first in line %(first)s",
        ),
    ),
    (
        r"the text is not valid UTF-8 \(byte (?P<at>\d+)\)",
        _(
            "the text is not valid UTF-8 (byte %(at)s)",
        ),
    ),
    (
        r"step (?P<key>.+) is already defined as (?P<place>steps\.\d+)",
        _(
            "step %(key)s is already defined as %(place)s",
        ),
    ),
    (
        r"step (?P<key>.+) depends on (?P<other>.+), which is no step of this plan",
        _(
            "step %(key)s depends on %(other)s, which is no step of this plan",
        ),
    ),
    (r"step (?P<key>.+) depends on itself", _("step %(key)s depends on itself")),
    (
        r"step (?P<key>.+) of phase (?P<phase>\d+) depends on (?P<other>.+) of the later phase "
        r"(?P<later>\d+)",
        _(
            "step %(key)s of phase %(phase)s depends on %(other)s of the later phase %(later)s",
        ),
    ),
    (
        r"the steps depend on each other in a cycle: (?P<way>.+)",
        _(
            "the steps depend on each other in a cycle: %(way)s",
        ),
    ),
    (
        r"the tasks depend on each other in a cycle: (?P<way>.+)",
        _(
            "the tasks depend on each other in a cycle: %(way)s",
        ),
    ),
    (r"(?P<name>.+) is itself", _("%(name)s is itself")),
    (
        r"(?P<name>.+) is no task of the list or the project",
        _(
            "%(name)s is no task of the list or the project",
        ),
    ),
    (
        r"(?P<path>.+) must be relative to the workspace",
        _(
            "%(path)s must be relative to the workspace",
        ),
    ),
    (
        r"(?P<path>.+) climbs out of its directory with '\.\.'",
        _(
            "%(path)s climbs out of its directory with “..”",
        ),
    ),
    (
        r"(?P<word>.+) needs a shell, and commands run without one: write one program with its "
        r"arguments for each command",
        _(
            "%(word)s needs a shell, and commands run without one: write one program with its "
            "arguments for each command",
        ),
    ),
    (r"cannot be split into words: (?P<why>.+)", _("cannot be split into words: %(why)s")),
    (
        r"(?P<name>\S+) has no test case and no verify command",
        _(
            "%(name)s has no test case and no verify command",
        ),
    ),
    (
        r"the performance constraint (?P<name>.+) has no metric",
        _(
            "the performance constraint %(name)s has no metric",
        ),
    ),
    (
        r"The master task list has (?P<n>\d+) fault\(s\); nothing was changed\.",
        ngettext_lazy(
            "The master task list has %(n)s fault; nothing was changed.",
            "The master task list has %(n)s faults; nothing was changed.",
            "n",
        ),
    ),
    (
        r"(?P<yaml>(?:while |did not |could not |found |mapping values |block sequence ).+)",
        "%(yaml)s",
    ),
)


def yaml_words(said: str) -> str:
    """Say what a YAML parser complains of, part by part."""
    return ", ".join(str(YAML_TEXTS.get(part, part)) for part in said.split(", "))
