"""Count in a text what S1's five dimensions are made of, and say what was counted.

Source: DESIGN section 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from orchestration.policy import Policy
from orchestration.rules import lexicon
from orchestration.rules.phrases import Folded, Signal
from orchestration.rules.prefilter import find_signals
from orchestration.rules.redlines import red_lines_in
from orchestration.rules.vocabulary import Inflection, Term, Vocabulary

DIMENSIONS = ("steps", "domains", "uncertainty", "failure_cost", "toolchain")
LOWEST, HIGHEST = 1, 5
_SHOWN = 20
"""Words shown as evidence of one dimension; the count is of all."""
_FAILURES_ADD = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a dimension has its score. Shape: `text` at `offset`, or only how many were counted."""

    dimension: str
    reason: str
    text: str
    offset: int | None = None
    count: int = 1


class Dimensions(NamedTuple):
    """The five scores, each 1 to 5."""

    steps: int
    domains: int
    uncertainty: int
    failure_cost: int
    toolchain: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What happened so far on a task that is under way."""

    actual_steps: int = 0
    estimated_steps: int = 1
    failure_count: int = 0
    unexpected_blockers: int = 0
    reported_domains: tuple[str, ...] = ()
    is_uncertain: bool = False


def _band(count: int, middle: int, top: int) -> int:
    """Return 1, 3 or 5 for a count."""
    return 5 if count >= top else 3 if count >= middle else 1


def _steps_score(count: int) -> int:
    """Return the score of a number of steps: 1 to 2, 3 to 5, 6 or more."""
    return _band(count, 3, 6)


def _domains_score(count: int) -> int:
    """Return the score of a number of fields: 1, 2 to 3, 4 or more."""
    return _band(count, 2, 4)


def _terms(kind: str, listed: Iterable[str], inflection: Inflection) -> list[Term]:
    """Make terms of one kind."""
    return [Term(kind, word, inflection) for word in listed]


def _lexicon_terms() -> list[Term]:
    """Make the terms that no policy changes."""
    terms = _terms("build", lexicon.BUILD_VERBS, Inflection.VERB)
    for kind, listed in (
        ("system", lexicon.SYSTEM_NOUNS),
        ("scratch", lexicon.FROM_SCRATCH),
        ("expert", lexicon.EXPERT),
        ("tool", lexicon.TOOLS),
        ("many_systems", lexicon.MANY_SYSTEMS),
        ("integration", lexicon.INTEGRATION),
        ("research", lexicon.RESEARCH),
        ("inquiry", lexicon.INQUIRY),
    ):
        terms += _terms(kind, listed, Inflection.ANY)
    terms += _terms("sequence", lexicon.SEQUENCE, Inflection.NONE)
    for domain, listed in lexicon.DOMAINS.items():
        terms += _terms(f"domain:{domain}", listed, Inflection.NOUN)
    for level, listed in lexicon.COSTS.items():
        terms += _terms(f"cost:{level}", listed, Inflection.ANY)
    return terms


@lru_cache(maxsize=1)
def _lexicon_vocabulary() -> Vocabulary:
    """Compile the lexicon once a process."""
    return Vocabulary(_lexicon_terms())


@lru_cache(maxsize=64)
def _verb_vocabulary(intent_verbs: tuple[str, ...], action_verbs: tuple[str, ...]) -> Vocabulary:
    """Compile a policy's verbs once."""
    return Vocabulary(_terms("verb", dict.fromkeys(intent_verbs + action_verbs), Inflection.VERB))


class Reading:
    """What was found in one text, by kind."""

    def __init__(self, text: str, policy: Policy) -> None:
        """Search the text once with the policy's words and once with the lexicon's."""
        triggers = policy.triggers
        folded = Folded(text)
        self.signals: dict[str, list[Signal]] = {}
        found, self.counts = find_signals(text, policy)
        for signal in found:
            self.signals.setdefault(signal.kind, []).append(signal)
        verbs = _verb_vocabulary(triggers.intent_verbs, triggers.action_verbs)
        for vocabulary in (verbs, _lexicon_vocabulary()):
            for start, end, kind in vocabulary.find(folded.text)[0]:
                self.signals.setdefault(kind, []).append(folded.signal(kind, start, end))
        self.components = _components(folded.text) if self.has("verb") else 1
        self.red_lines = red_lines_in([text], policy)
        self.is_broad = self.has("scope_word") or self.has("system")
        self.builds_system = self.has("build") and self.is_broad

    def has(self, kind: str) -> bool:
        """Say whether anything of a kind was found."""
        return kind in self.signals

    def distinct(self, *kinds: str) -> list[Signal]:
        """Return each different word of some kinds once, where it is first."""
        first: dict[str, Signal] = {}
        for kind in kinds:
            for signal in self.signals.get(kind, ()):
                first.setdefault(signal.text.lower(), signal)
        return list(first.values())


def _evidence(dimension: str, reason: str, signals: Iterable[Signal]) -> list[Evidence]:
    """Show the words behind a count."""
    return [
        Evidence(dimension, reason, signal.text, signal.offset) for signal in list(signals)[:_SHOWN]
    ]


_SENTENCE = re.compile(r"[。！？!?；;\n]|\.\s")
_SEPARATOR = re.compile(r"[、+＋]")
_LAST_JOINED = re.compile(r"和|与|以及|及|\band\b")
_ENGLISH_LIST = re.compile(r",\s*(?P<last>[\w' -]{1,40}\s)?(?:and|or)\s")


def _components(text: str) -> int:
    """Count the parts of the longest enumeration in one sentence: `A + B + C`, `A, B and C`."""
    most = 1
    for sentence in _SENTENCE.split(text):
        separators = list(_SEPARATOR.finditer(sentence))
        if separators:
            joined = _LAST_JOINED.search(sentence, separators[-1].end()) is not None
            most = max(most, len(separators) + 1 + joined)
        listed = _ENGLISH_LIST.search(sentence)
        if listed is not None:
            most = max(most, sentence.count(",") + 1 + (listed["last"] is not None))
    return most


def _steps(reading: Reading, record: RunRecord | None) -> tuple[int, list[Evidence]]:
    """Count steps: listed, told in order, by verbs, by parts; and those nobody lists."""
    verbs = reading.distinct("verb")
    items = reading.signals.get("list", [])
    told = reading.distinct("sequence") if reading.has("multi_step") else []
    evidence = _evidence("steps", "verb", verbs) + _evidence("steps", "list_item", items)
    evidence += _evidence("steps", "told_in_order", told)
    count = max(len(verbs), reading.counts.get("list", 0), len(told), reading.components)
    if reading.components > 1:
        evidence.append(Evidence("steps", "components", "", None, reading.components))
    implied = 5 if reading.builds_system else 0
    if not implied and (reading.has("build") or (reading.has("intent_verb") and reading.is_broad)):
        implied = 2
    if implied:
        evidence.append(Evidence("steps", "implied", "", None, implied))
    score = _steps_score(count + implied)
    # What was done so far is a lower bound of what is needed, so it never lowers the score.
    if record is not None and record.actual_steps:
        evidence.append(Evidence("steps", "actual_steps", "", None, record.actual_steps))
        score = max(score, _steps_score(record.actual_steps))
    return score, evidence


def _domains(reading: Reading, record: RunRecord | None) -> tuple[int, list[Evidence]]:
    """Count fields of knowledge: named, implied by a whole system, reported by the executor."""
    evidence: list[Evidence] = []
    names = {kind.partition(":")[2] for kind in reading.signals if kind.startswith("domain:")}
    for name in sorted(names):
        evidence += _evidence("domains", name, reading.distinct(f"domain:{name}")[:1])
    implied = 2 if reading.builds_system else 0
    if implied:
        evidence.append(Evidence("domains", "implied", "", None, implied))
    experts = reading.distinct("expert")
    evidence += _evidence("domains", "expert", experts)
    for reported in record.reported_domains if record is not None else ():
        name = _known_domain(reported)
        names.add(name)
        evidence.append(Evidence("domains", "reported", name))
    return HIGHEST if experts else _domains_score(len(names) + implied), evidence


def _known_domain(reported: str) -> str:
    """Return our name of a field that an executor named in its own words."""
    name = " ".join(reported.lower().replace("_", " ").split())
    if name.replace(" ", "_") in lexicon.DOMAINS:
        return name.replace(" ", "_")
    hits, _ = _lexicon_vocabulary().find(name)
    known = [kind.partition(":")[2] for _, _, kind in hits if kind.startswith("domain:")]
    return known[0] if known else name


def _uncertainty(
    reading: Reading, record: RunRecord | None, policy: Policy
) -> tuple[int, list[Evidence]]:
    """Add up what is not known: vague wording, research, breadth, a start from nothing."""
    points = LOWEST
    evidence: list[Evidence] = []
    for reason, weight, signals in (
        ("vague", 2, reading.distinct("uncertainty")[:2]),
        ("research", 2, reading.distinct("research")[:1]),
        ("inquiry", 1, reading.distinct("inquiry")[:1]),
        ("broad", 1, reading.distinct("scope_word", "system")[:1]),
        ("from_scratch", 1, reading.distinct("scratch")[:1]),
    ):
        points += weight * len(signals)
        evidence += _evidence("uncertainty", reason, signals)
    if reading.builds_system and not reading.has("tool"):
        points += 1
        evidence.append(Evidence("uncertainty", "no_technology_named", ""))
    if record is not None and (record.unexpected_blockers > 0 or record.is_uncertain):
        reason = "uncertain" if record.is_uncertain else "blockers"
        evidence.append(
            Evidence("uncertainty", reason, "", None, max(1, record.unexpected_blockers))
        )
        return HIGHEST, evidence
    return min(HIGHEST, points + _for_failures("uncertainty", record, policy, evidence)), evidence


def _failure_cost(
    reading: Reading, record: RunRecord | None, policy: Policy
) -> tuple[int, list[Evidence]]:
    """Take the highest level of any word that tells what a failure costs."""
    if reading.red_lines:
        return HIGHEST, _evidence("failure_cost", "red_line", reading.red_lines)
    evidence: list[Evidence] = []
    level = max((level for level in lexicon.COSTS if reading.has(f"cost:{level}")), default=LOWEST)
    if level > LOWEST:
        evidence += _evidence("failure_cost", f"level_{level}", reading.distinct(f"cost:{level}"))
    return min(HIGHEST, level + _for_failures("failure_cost", record, policy, evidence)), evidence


def _for_failures(
    dimension: str, record: RunRecord | None, policy: Policy, evidence: list[Evidence]
) -> int:
    """Return what repeated failures add to a dimension."""
    threshold = policy.thresholds.dynamic_upgrade_failure_threshold
    if record is None or record.failure_count < threshold:
        return 0
    evidence.append(Evidence(dimension, "failures", "", None, record.failure_count))
    return _FAILURES_ADD


def _toolchain(reading: Reading) -> tuple[int, list[Evidence]]:
    """Count tools and systems: named, joined, or needed by a whole system."""
    tools, joins = reading.distinct("tool"), reading.distinct("integration")
    many = reading.distinct("many_systems")
    evidence = _evidence("toolchain", "tool", tools) + _evidence("toolchain", "integration", joins)
    evidence += _evidence("toolchain", "many_systems", many)
    implied = 0
    if reading.builds_system:
        implied = 4 if reading.has("scratch") else 3
    elif reading.has("intent_verb") and reading.is_broad:
        implied = 2
    if implied:
        evidence.append(Evidence("toolchain", "implied", "", None, implied))
    count = max(len(tools) + bool(joins), implied)
    return HIGHEST if many else _band(count, 2, 4), evidence


def assess(
    text: str, policy: Policy, record: RunRecord | None
) -> tuple[Dimensions, list[Evidence], bool]:
    """Score the five dimensions of a text; also say whether it crosses a red line."""
    reading = Reading(text, policy)
    scored = (
        _steps(reading, record),
        _domains(reading, record),
        _uncertainty(reading, record, policy),
        _failure_cost(reading, record, policy),
        _toolchain(reading),
    )
    evidence = [found for _, founds in scored for found in founds]
    return Dimensions(*(value for value, _ in scored)), evidence, bool(reading.red_lines)
