"""S0: decide from the words alone whether a message goes direct or is assessed.

No database, no model, no backtracking: the cost grows with the length of the message only.
Source: DESIGN section 5.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal

from orchestration.policy import GAP_MARK, Policy, Thresholds, Triggers
from orchestration.rules.phrases import MAX_HITS, Folded, GapPhrases, Signal
from orchestration.rules.shape import shape_signals
from orchestration.rules.vocabulary import Hit, Inflection, Term, Vocabulary
from orchestration.rules.whitelist import MAX_LENGTH, MessageKind, Whitelist, core_span

__all__ = ["MessageKind", "Prefilter", "PrefilterResult", "Signal", "compile_triggers", "prefilter"]

SIGNAL_KINDS = (
    "length",
    "paragraphs",
    "list",
    "intent_verb",
    "scope_word",
    "multi_step",
    "uncertainty",
    "explicit_trigger",
)
"""In the order in which one of them is named as the deciding rule."""

VERB_SCAN_LENGTH = 20_000
"""Verbs side by side are looked for in this many characters; anything longer is long anyway."""
_MAX_VERB_GAP = 16
_JOINED = re.compile(r"\s*(?:[、/+＋&,，]|和|与|及|以及|并|并且|或|再|and|or|,\s*and)\s*")
_JOINS = re.compile(r"[、，,;；/+＋]|并|再|和|以及|\band\b|\bthen\b")
_VERBS = frozenset({"intent_verb", "verb"})
_SENTENCE_END = re.compile(r"[。！？!?\n]|\.\s")


@dataclass(frozen=True, slots=True)
class PrefilterResult:
    """What S0 decided. Shape: `signals` by offset, at most 100 a kind; `counts` tells how many.

    Units: elapsed_us, microseconds.
    """

    outcome: Literal["direct", "assess"]
    rule: str
    signals: tuple[Signal, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    kind_of_message: MessageKind | None = None
    elapsed_us: int = field(default=0, compare=False)

    @property
    def is_message(self) -> bool:
        """Say whether it is talk and no work: small talk, a continuation or a plain question."""
        return self.kind_of_message not in (None, MessageKind.INSTRUCTION)

    def as_json(self) -> dict[str, Any]:
        """Return the record of the assessment as the API shows it."""
        return {
            "stage": "S0",
            "outcome": self.outcome,
            "rule": self.rule,
            "signals": [signal.as_json() for signal in self.signals],
            "counts": dict(self.counts),
            "elapsed_us": self.elapsed_us,
        }


class Prefilter:
    """S0 with the trigger words of one policy, compiled once."""

    __slots__ = ("_gaps", "_length_limit", "_verbs", "_whitelist", "_words", "_words_and_verbs")

    def __init__(self, triggers: Triggers, thresholds: Thresholds) -> None:
        """Compile the words."""
        self._length_limit = thresholds.s0_message_length_threshold
        self._whitelist = Whitelist(triggers)
        intents = [Term("intent_verb", verb, Inflection.VERB) for verb in triggers.intent_verbs]
        actions = [
            Term("verb", verb, Inflection.VERB)
            for verb in triggers.action_verbs
            if verb not in triggers.intent_verbs
        ]
        terms = intents + [Term("scope_word", w, Inflection.NOUN) for w in triggers.scope_words]
        gaps: list[tuple[str, str]] = []
        for kind, phrases, inflection in (
            ("multi_step", triggers.multi_step, Inflection.NONE),
            ("uncertainty", triggers.uncertainty, Inflection.NONE),
            ("explicit_trigger", triggers.explicit_triggers, Inflection.NOUN),
        ):
            terms += [Term(kind, p, inflection) for p in phrases if GAP_MARK not in p]
            gaps += [(kind, phrase) for phrase in phrases if GAP_MARK in phrase]
        self._gaps = GapPhrases(gaps)
        self._words = Vocabulary(terms)
        self._verbs = Vocabulary(intents + actions)
        self._words_and_verbs = Vocabulary(terms + actions)

    def run(self, text: str) -> PrefilterResult:
        """Decide on one message."""
        started_ns = time.perf_counter_ns()
        folded = Folded(text)
        stripped = folded.text.strip()
        span = core_span(stripped) if len(stripped) <= MAX_LENGTH else None
        kind = self._whitelist.small_talk(stripped, span) if span is not None else None
        signals: list[Signal] = []
        counts: dict[str, int] = {}
        if kind is None:
            signals, counts, has_verb = self.signals(folded, stripped)
            if span is not None:
                kind = self._short_kind(stripped, span, counts, has_verb=has_verb)
        outcome: Literal["direct", "assess"] = "direct"
        rule = "no_signal"
        if kind is not None:
            rule, signals, counts = f"whitelist.{kind}", [], {}
        elif counts:
            outcome = "assess"
            rule = "signal." + next(name for name in SIGNAL_KINDS if name in counts)
        elapsed_us = (time.perf_counter_ns() - started_ns) // 1_000
        return PrefilterResult(outcome, rule, tuple(signals), counts, kind, elapsed_us)

    def _short_kind(
        self, text: str, span: tuple[int, int], counts: Mapping[str, int], *, has_verb: bool
    ) -> MessageKind | None:
        """Return what kind of whitelisted message a short text is, once its words are known."""
        plain = self._whitelist.without_courtesy(text, span)
        if plain != text:
            text, span = plain, core_span(plain)
        instruction = self._whitelist.instruction(text, span, has_steps="multi_step" in counts)
        # "Can you open it?" is an instruction, "what does opening it do?" a question.
        if instruction is not None and self._whitelist.is_request(text, span):
            return instruction
        question = self._whitelist.question(
            text,
            span,
            has_intent="intent_verb" in counts,
            has_signal=bool(counts),
            has_verb=has_verb,
        )
        return question or instruction

    def signals(self, folded: Folded, stripped: str) -> tuple[list[Signal], dict[str, int], bool]:
        """Find every signal; also say whether there is any verb of work."""
        text = folded.text
        if len(text) <= VERB_SCAN_LENGTH:
            hits, counts = self._words_and_verbs.find(text)
            verbs = [hit for hit in hits if hit[2] in _VERBS] if hits else hits
            if counts.pop("verb", 0):
                hits = [hit for hit in hits if hit[2] != "verb"]
        else:
            hits, counts = self._words.find(text)
            verbs, _ = self._verbs.find(text[:VERB_SCAN_LENGTH])
        signals = folded.signals(hits) if hits else []
        for kind, parts in self._gaps.find(text):
            matched = GAP_MARK.join(folded.visible[first:last] for first, last in parts)
            signals.append(Signal(kind, matched, folded.offset(parts[0][0])))
            counts[kind] = counts.get(kind, 0) + 1
        if len(verbs) > 1:
            for first, last in _verb_chains(text, verbs):
                count = counts["multi_step"] = counts.get("multi_step", 0) + 1
                if count <= MAX_HITS:
                    signals.append(folded.signal("multi_step", first, last))
        shape = shape_signals(stripped, self._length_limit)
        if shape:
            start = len(text) - len(text.lstrip())
            for (kind, matched, offset), count in shape:
                counts[kind] = count
                signals.append(Signal(kind, matched, folded.offset(start + offset)))
        if len(signals) > 1:
            signals.sort(key=itemgetter(2))
        return signals, counts, bool(verbs)


def _verb_chains(text: str, verbs: list[Hit]) -> list[tuple[int, int]]:
    """Find verbs side by side: two joined directly, or three of one sentence with their objects.

    Shape: the span from the first verb to the last of each chain.
    """
    chains: list[tuple[int, int]] = []
    first, length, direct = verbs[0][0], 1, True
    for (_, end, _), (start, _, _) in pairwise([*verbs, (len(text) + MAX_HITS, 0, "")]):
        if start - end <= _MAX_VERB_GAP:
            gap = text[end:start]
            joined = _JOINED.fullmatch(gap) is not None
            if joined or (_JOINS.search(gap) and not _SENTENCE_END.search(gap)):
                length += 1
                direct = direct and joined
                continue
        if length >= (2 if direct else 3):
            chains.append((first, end))
        first, length, direct = start, 1, True
    return chains


@lru_cache(maxsize=64)
def compile_triggers(triggers: Triggers, thresholds: Thresholds) -> Prefilter:
    """Compile a policy's words, once for each distinct set of words and thresholds."""
    return Prefilter(triggers, thresholds)


_KEPT = 64
_compiled: dict[int, tuple[Policy, Prefilter]] = {}
"""By identity of a policy that the entry keeps alive: hashing all words costs as much as S0."""


def _compiled_for(policy: Policy) -> Prefilter:
    """Return the compiled words of a policy."""
    entry = _compiled.get(id(policy))
    if entry is None or entry[0] is not policy:
        if len(_compiled) >= _KEPT:
            _compiled.clear()
        entry = (policy, compile_triggers(policy.triggers, policy.thresholds))
        _compiled[id(policy)] = entry
    return entry[1]


def prefilter(text: str, policy: Policy) -> PrefilterResult:
    """Run S0 on one message."""
    return _compiled_for(policy).run(text)


def find_signals(text: str, policy: Policy) -> tuple[list[Signal], dict[str, int]]:
    """Find the signals of a text whether or not it is on the whitelist.

    Shape: signals by offset, at most 100 a kind, and the count of each kind.
    """
    folded = Folded(text)
    signals, counts, _ = _compiled_for(policy).signals(folded, folded.text.strip())
    return signals, counts
