"""Search terms of a text, Chinese and English, and what is found by them.

Words of letters and digits are folded and lose their English ending; runs of Chinese (and kana and
hangul) become pairs of neighbouring characters. The same rows give the same results on every
database, because nothing here is the database's: it only compares terms for equality.
Source: DESIGN section 12 ("searchable in Chinese and English on both databases").
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

MAX_TERM = 40
MAX_TERMS = 400
"""Distinct terms that one text is found by; the most frequent ones of a longer text."""
MAX_WEIGHT = 20
TITLE_WEIGHT = 3
QUERY_CHARACTERS = 4_000
QUERY_TERMS = 16
"""Terms a query is answered by: its rarest. Common ones say little and cost the most."""
LEAST_QUERY_TERMS = 6
BASE_WEIGHT = 4
"""A term that stands in a document counts this, and its weight on top."""
SCALE = 1_000

_PAIRED = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_PAIRED}]+|[^\W_{_PAIRED}]+")
_IS_PAIRED = re.compile(rf"[{_PAIRED}]")
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by can do does for from had has have he her his how if in"
        " into is it its may me more must my no not of on or our shall she should so such than that"
        " the their them then there these they this those to too under up upon us was we were what"
        " when where which who why will with would you your",
    )
)
_STOP_PAIRS = frozenset(
    re.findall(r"..", "的是是的了一一个这个那个我们你们他们以及或者并且因为所以")
)


def terms_of(text: str, *, limit: int = MAX_TERMS) -> dict[str, int]:
    """Count the search terms of a text. Shape: at most `limit` terms, the most frequent first."""
    counted: Counter[str] = Counter()
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _IS_PAIRED.match(run):
            pairs = [run[at : at + 2] for at in range(len(run) - 1)] or [run]
            counted.update(pair for pair in pairs if pair not in _STOP_PAIRS)
        elif run not in _STOP and (len(run) > 1 or run.isdigit()):
            counted[stem(run)[:MAX_TERM]] += 1
    return dict(sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:limit])


def document_terms(title: str, body: str) -> dict[str, int]:
    """Weigh the terms a document is found by: those of its title count three times."""
    weights: Counter[str] = Counter(terms_of(body))
    for term, count in terms_of(title).items():
        weights[term] += TITLE_WEIGHT * count
    ranked = sorted(weights.items(), key=lambda one: (-one[1], one[0]))[:MAX_TERMS]
    return {term: min(weight, MAX_WEIGHT) for term, weight in ranked}


def stem(word: str) -> str:
    """Take the ending off an English word, so that `leases` and `leased` find `lease`."""
    if not word.isascii() or len(word) < 4 or not word.isalpha():
        return word
    for ending in ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            if ending == "s" and word.endswith(("ss", "us", "is")):
                break
            base = word[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
            return _bare(base)
    return _bare(word)


def _bare(base: str) -> str:
    """Drop a doubled last letter and a final e: `planned` and `plan`, `caching` and `cache`."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeiouls":
        return base[:-1]
    return base[:-1] if len(base) > 3 and base.endswith("e") else base


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for. Shape: `wanted` all its terms, `used` the rarest, with their worth."""

    wanted: frozenset[str]
    used: Mapping[str, int]


def query_of(text: str) -> frozenset[str]:
    """Read the terms of a query; only the beginning of a long text is looked at."""
    return frozenset(terms_of(text[:QUERY_CHARACTERS]))


def weigh_query(wanted: frozenset[str], found_in: Mapping[str, int], total: int) -> Query:
    """Keep the rarest terms of a query that occur at all, each with what a hit of it is worth.

    What more than half of the documents hold says nothing of one, and costs the most to look up:
    it is kept only where there is little else.
    """
    known = sorted((count, term) for term, count in found_in.items() if count and term in wanted)
    telling = [one for one in known if 2 * one[0] <= total]
    kept = telling if len(telling) >= LEAST_QUERY_TERMS else known[:LEAST_QUERY_TERMS]
    used = {
        term: max(1, round(SCALE * math.log(1 + max(total, count) / count)))
        for count, term in kept[:QUERY_TERMS]
    }
    return Query(wanted, used)


def is_paired(term: str) -> bool:
    """Whether a term is of a script that is searched by pairs of characters."""
    return _IS_PAIRED.match(term) is not None
