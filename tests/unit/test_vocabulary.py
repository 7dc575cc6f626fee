"""Words, their forms, and the way back from a folded text to the original."""

from __future__ import annotations

import sys

import pytest

from orchestration.rules.phrases import Folded, GapPhrases
from orchestration.rules.vocabulary import Inflection, Term, Vocabulary, noun_forms, verb_forms


def words_in(text: str, *words: str, inflection: Inflection = Inflection.NONE) -> list[str]:
    """Return the words found in a text, as they stand in it."""
    vocabulary = Vocabulary(Term("w", word, inflection) for word in words)
    folded = Folded(text)
    hits, counts = vocabulary.find(folded.text)
    assert counts.get("w", 0) == len(hits)
    return [folded.visible[start:end] for start, end, _ in hits]


@pytest.mark.parametrize(
    ("verb", "forms"),
    [
        ("create", "creates created creating recreate"),
        ("deploy", "deploys deployed deploying redeploy"),
        ("notify", "notifies notified notifying"),
        ("build", "builds building built rebuilt"),
        ("plan", "plans planned planning"),
        ("debug", "debugs debugged debugging"),
        ("analyse", "analyses analysed analysing"),
        ("fix", "fixes fixed fixing"),
        ("publish", "publishes published publishing"),
        ("write", "writes writing wrote written rewrote"),
    ],
)
def test_verbs_have_their_forms(verb: str, forms: str) -> None:
    assert set(forms.split()) <= verb_forms(verb)


def test_a_verb_of_two_words_changes_its_first() -> None:
    assert {"sets up", "setting up", "set up"} <= verb_forms("set up")


def test_nouns_have_plural_and_adverb() -> None:
    assert {"systems", "completely"} <= noun_forms("system") | noun_forms("complete")


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("a cat, a catalogue", ["cat"], ["cat"]),
        ("我cat你", ["cat"], ["cat"]),
        ("my_cat cat2 cat", ["cat"], ["cat"]),
        ("end-to-end and end to  end", ["end to end"], ["end-to-end", "end to  end"]),
        ("end to nowhere", ["end to end"], []),
        ("c++ and c", ["c++"], ["c++"]),
        ("整个整套", ["整个", "整套"], ["整个", "整套"]),
        ("需要规划", ["规划", "需要规划"], ["需要规划"]),
        ("TDD流程", ["tdd流程"], ["TDD流程"]),
        ("the end", [""], []),
    ],
)
def test_words_match_where_they_should(text: str, words: list[str], found: list[str]) -> None:
    assert words_in(text, *words) == found


def test_no_word_finds_nothing() -> None:
    assert Vocabulary([]).find("anything 重构") == ([], {})


def test_folding_never_moves_a_character() -> None:
    for start in range(0, sys.maxunicode, 4_096):
        text = "".join(map(chr, range(start, min(start + 4_096, sys.maxunicode + 1))))
        folded = Folded(text)
        assert len(folded.text) == len(folded.visible)


def test_folding_leads_back_to_every_character() -> None:
    text = "\x00a\u200b\u200bb\ufe0fc\ud800" + "İＡ重\u202e构" + "\u00ad"
    folded = Folded(text)
    assert [text[folded.offset(i)] for i in range(len(folded.visible))] == list(folded.visible)
    assert folded.text == "abcia重构"


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("先a然后b", [[(0, 1), (2, 4)]]),
        ("然后b先a", []),
        ("先a", []),
        ("先先然后然后", [[(0, 1), (2, 4)]]),
    ],
)
def test_gap_phrases_need_their_parts_in_order(
    text: str, spans: list[list[tuple[int, int]]]
) -> None:
    found = GapPhrases([("k", "先…然后")]).find(text)
    assert found == [("k", parts) for parts in spans]


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("First a, then b", True),
        ("firstly a, then b", False),
        ("xfirst a then b, first c", False),
        ("first a; athens", False),
        ("xfirst, first and then", True),
    ],
)
def test_english_gap_phrases_need_boundaries(*, text: str, is_found: bool) -> None:
    phrases = GapPhrases([("k", "first … then")])
    assert bool(phrases.find(Folded(text).text)) is is_found
