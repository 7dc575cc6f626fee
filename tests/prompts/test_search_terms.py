"""Terms of Chinese and English, and the order that they give."""

from __future__ import annotations

import pytest

from orchestration.rules.search_terms import (
    MAX_TERM,
    MAX_TERMS,
    QUERY_TERMS,
    document_terms,
    query_of,
    stem,
    terms_of,
    weigh_query,
)


@pytest.mark.parametrize(
    ("words", "term"),
    [
        (("lease", "leases", "leased", "leasing"), "leas"),
        (("plan", "plans", "planned", "planning"), "plan"),
        (("retry", "retries", "retried"), "retry"),
        (("cache", "caches", "caching"), "cach"),
        (("status",), "status"),
        (("process",), "process"),
    ],
)
def test_forms_of_an_english_word_are_one_term(words: tuple[str, ...], term: str) -> None:
    assert {stem(word) for word in words} == {term}


def test_chinese_is_found_by_pairs_and_a_lone_character_by_itself() -> None:
    assert set(terms_of("数据库迁移")) == {"数据", "据库", "库迁", "迁移"}
    assert set(terms_of("租 API接口")) == {"租", "api", "接口"}


def test_width_and_case_do_not_matter() -> None:
    assert terms_of("ＡＰＩ Api API") == {"api": 3}


def test_common_words_find_nothing() -> None:
    assert terms_of("the of and 是的") == {}


def test_a_long_text_keeps_its_most_frequent_terms_and_no_endless_one() -> None:
    text = "retry " * 3 + " ".join(f"w{n}" for n in range(MAX_TERMS * 2)) + " " + "x" * 500
    found = terms_of(text)
    assert len(found) == MAX_TERMS
    assert next(iter(found)) == "retry"
    assert all(len(term) <= MAX_TERM for term in found)


def test_title_counts_three_times() -> None:
    assert document_terms("lease", "lease lock") == {"leas": 4, "lock": 1}


def test_rare_terms_weigh_more_and_what_nothing_holds_is_left_out() -> None:
    query = weigh_query(query_of("payment lease tea"), {"payment": 90, "leas": 2, "tea": 0}, 100)
    assert query.used["leas"] > query.used["payment"]
    assert "tea" not in query.used


def test_what_most_documents_hold_is_asked_for_only_where_there_is_little_else() -> None:
    words = [f"word{n}" for n in range(20)]
    rare = dict.fromkeys(words, 3)
    query = weigh_query(frozenset([*words, "common"]), {**rare, "common": 900}, 1_000)
    assert set(query.used) == set(sorted(words)[:QUERY_TERMS])
    alone = weigh_query(frozenset(["common"]), {"common": 900}, 1_000)
    assert set(alone.used) == {"common"}
