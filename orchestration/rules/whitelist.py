"""The whitelist of S0: messages that need no assessment because they say so little.

A pattern must match the whole message. Whatever is left over, a second clause, a connector before
a verb, a bullet, takes the message off the whitelist; its signals then decide.
Source: DESIGN section 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from orchestration.policy import Triggers
from orchestration.rules.phrases import Folded, normal_spacing
from orchestration.rules.vocabulary import trie_pattern, verb_forms

MAX_LENGTH = 200
"""Characters. A longer message is never small talk, a plain question or a simple instruction."""
MAX_QUESTION_LENGTH = 40


class MessageKind(StrEnum):
    """What kind of whitelisted message it is. All but an instruction stay off the master list."""

    SMALL_TALK = "small_talk"
    CONTINUATION = "continuation"
    QUESTION = "question"
    INSTRUCTION = "instruction"


_AROUND = re.compile(r"[\W_]*+")
_PIECES = re.compile(r"[^\w\s']+")
_PIECE = re.compile(r"[\w\s']*+")
_PARTICLES = "[啊呀啦哦呢吧了哈的嘛噢哟\\s]*+"
_URL = re.compile(r"[a-z]{2,10}://[^\s，。；！？、]+")
# One clause: letters, digits, blanks and marks that do not end a clause. Emoji and dashes do.
_CLAUSE_END = re.compile(
    r"[^\w\t ' \"“”‘’「」『』()（）《》<>\[\]{}.\-/@#&+=%$:~*\\^,]"
    r"|,(?!\d)|[.:](?=\s|[^\x00-\x7f]|\Z)|\s-+\s|&&"
)
_QUOTED = re.compile(r"\"[^\"]+\"|“[^“”]+”|「[^「」]+」|『[^『』]+』|'[^']+'|‘[^‘’]+’|《[^《》]+》")
_TARGET = re.compile(r"\s*(?:成|为|到|into|to|in)\s*(?:[\u4e00-\u9fff]{1,5}[文语话]|[a-z]{4,12})")
_POLITE = re.compile(
    r"(?:(?:请|麻烦你|麻烦您|麻烦|劳驾|帮我|帮忙|帮|给我|你能|能不能|能否|可以|可否|能"
    r"|please|pls|can you|could you|would you|will you|just)\s*)*+"
)
_REQUEST = re.compile(
    r"(?:请|麻烦|帮|给我|能不能|能否|可不可以|可否|可以|能|要不要|把|please|pls|let's|let us"
    r"|(?:can|could|would|will|shall|should) (?:you|we|i)\b)|.*(?:帮我|把)"
)
_WITH_CONTENT = re.compile(
    r".*(?:翻译|译成|translate|消息|信息|短信|邮件|message|email|提醒|remind)"
)
_SEARCH = re.compile(r"搜|search|look|google")
_ALWAYS_JOINS = (
    r"然后|接着|随后|并且|同时|顺便|另外|而且|还要|还有|此外|之后再|完了?再|以便|从而"
    r"|\b(?:then|also|afterwards|after that|additionally|plus|as well as)\b"
)


def _alternatives(words: Iterable[str]) -> str:
    """Write words as alternatives, the longest first, English ones up to a boundary."""
    folded = {normal_spacing(Folded(word).text) for word in words} - {""}
    ordered = sorted(folded, key=len, reverse=True)
    return "|".join(
        re.escape(word).replace(r"\ ", r"\s+") + (r"(?![a-z0-9_'])" if word.isascii() else "")
        for word in ordered
    )


def _composed_of(words: Iterable[str]) -> re.Pattern[str]:
    """Match a text made of these words and particles only; possessive, so it never backtracks."""
    return re.compile(rf"(?:(?:{_alternatives(words) or '(?!)'}){_PARTICLES})++")


def _joiners(triggers: Triggers) -> tuple[str, str]:
    """Write what makes a second step out of the words after it: any verb, or a purpose."""
    verbs = (*triggers.intent_verbs, *triggers.action_verbs)
    chinese = trie_pattern(verb for verb in verbs if not verb.isascii()) or "(?!)"
    english = [form for verb in verbs if verb.isascii() for form in verb_forms(verb.lower())]
    bounded = rf"(?:{trie_pattern(english) or '(?!)'})\b"
    joined = (
        rf"{_ALWAYS_JOINS}|(?:并|再|后)(?={chinese})"
        rf"|\b(?:and|or|but|so)\s+(?=(?:re-?)?{bounded})"
    )
    return joined, rf"{joined}|(?:来|去|以|\s)(?={chinese})|\bto\s+(?={bounded})"


class Whitelist:
    """The whitelist of one policy, compiled once."""

    __slots__ = (
        "_continuation",
        "_endings",
        "_instruction",
        "_join",
        "_purpose",
        "_question",
        "_small_talk",
        "_verb_first",
    )

    def __init__(self, triggers: Triggers) -> None:
        """Compile the words."""
        self._small_talk = _composed_of(triggers.small_talk)
        self._continuation = _composed_of((*triggers.small_talk, *triggers.continuations))
        self._question = re.compile(
            rf"{_POLITE.pattern}(?:{_alternatives(triggers.questions) or '(?!)'})[啊呀呢吗吧\s]*+"
        )
        self._endings = tuple(ending.lower() for ending in triggers.question_endings)
        self._instruction = re.compile(
            _POLITE.pattern + rf"(?P<opener>{_alternatives(triggers.instructions) or '(?!)'})"
        )
        join, purpose = _joiners(triggers)
        self._join, self._purpose = re.compile(join, re.ASCII), re.compile(purpose, re.ASCII)
        verbs = (*triggers.intent_verbs, *triggers.action_verbs)
        self._verb_first = re.compile(_alternatives(verbs) or "(?!)")

    def small_talk(self, text: str, span: tuple[int, int]) -> MessageKind | None:
        """Say whether every piece of a short folded text is small talk or a continuation."""
        start, end = span
        if start < end and self._continuation.match(text, start) is None:
            return None
        kind = MessageKind.SMALL_TALK
        for piece in _PIECES.split(text):
            words = piece.strip(" \t\r\n\f\v_'")
            if not words or self._small_talk.fullmatch(words) is not None:
                continue
            if self._continuation.fullmatch(words) is None:
                return None
            kind = MessageKind.CONTINUATION
        return kind

    def without_courtesy(self, text: str, span: tuple[int, int]) -> str:
        """Cut clauses of pure small talk from both ends: `好的，打开设置，谢谢` is `打开设置，`."""
        core = text[slice(*span)]
        first, last = _PIECE.match(core), _PIECE.match(core[::-1])
        if first is None or last is None or first.end() == len(core):
            return text
        if self._is_small_talk(core[len(core) - last.end() :]):
            text = text[: span[1] - last.end()]
        return text[span[0] + first.end() :] if self._is_small_talk(first[0]) else text

    def _is_small_talk(self, piece: str) -> bool:
        """Say whether a piece of a text has words, and all of them small talk."""
        return self._small_talk.fullmatch(piece.strip()) is not None

    def is_request(self, text: str, span: tuple[int, int]) -> bool:
        """Say whether a short folded text asks for something to be done, also as a question."""
        return _REQUEST.match(text, *span) is not None

    def question(
        self,
        text: str,
        span: tuple[int, int],
        *,
        has_intent: bool,
        has_signal: bool,
        has_verb: bool,
    ) -> MessageKind | None:
        """Say whether a short folded text is one plain question and nothing else."""
        start, end = span
        core = text[start:end]
        known = self._question.match(core)
        if known is not None and self._ends_question(known[0], text[start + known.end() :]):
            return MessageKind.QUESTION
        if has_intent or len(core) > MAX_QUESTION_LENGTH or _CLAUSE_END.search(core):
            return None
        closes = core.endswith(self._endings)
        if not closes and "?" not in text[end:] and "？" not in text[end:]:
            return None
        # A request in the shape of a question asks for work; it is plain only if nothing hints so.
        if _REQUEST.match(core) is not None and (has_signal or has_verb):
            return None
        if not closes and self._verb_first.match(core) is not None:
            return None
        return MessageKind.QUESTION

    def _ends_question(self, known: str, rest: str) -> bool:
        """Say whether a known question is all there is, or only carries what it is about."""
        target = _TARGET.match(rest)
        if target is not None:
            rest = rest[target.end() :]
        if not any(character.isalnum() for character in rest):
            return True
        return _WITH_CONTENT.match(known) is not None and _is_content(rest, self._join)

    def instruction(
        self, text: str, span: tuple[int, int], *, has_steps: bool
    ) -> MessageKind | None:
        """Say whether a short folded text is one simple instruction of one clause."""
        opened = self._instruction.match(text, *span)
        if opened is None or has_steps:
            return None
        opener = opened["opener"]
        joins = self._join if _SEARCH.match(opener) is not None else self._purpose
        rest = _URL.sub("url", text[opened.end() :]).strip()
        head, mark, content = rest.partition("：" if "：" in rest else ": ")
        if mark and _WITH_CONTENT.match(opener) is not None:
            plain = _is_clause(head, joins) and _is_content(f"：{content}", self._join)
        else:
            plain = _is_clause(rest[: core_span(rest)[1]], joins)
        return MessageKind.INSTRUCTION if rest and plain else None


def _is_clause(text: str, joins: re.Pattern[str]) -> bool:
    """Say whether the words are one clause with no second step."""
    return _CLAUSE_END.search(text) is None and joins.search(text) is None


def _is_content(text: str, joins: re.Pattern[str]) -> bool:
    """Say whether what follows is quoted and nothing else, or one clause after a colon."""
    stripped = text.lstrip()
    content = stripped.lstrip(":：").strip()
    quoted = _QUOTED.match(content)
    if quoted is not None:
        return not any(character.isalnum() for character in content[quoted.end() :])
    if not content or content == stripped.rstrip():
        return False
    return _is_clause(content[: core_span(content)[1]], joins)


def core_span(text: str) -> tuple[int, int]:
    """Return where a text starts and ends without white space, punctuation and emoji around it."""
    trailing = _AROUND.match(text[::-1])
    leading = _AROUND.match(text)
    end = len(text) - (trailing.end() if trailing is not None else 0)
    return min(end, leading.end() if leading is not None else 0), end
