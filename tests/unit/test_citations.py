"""What a document points at: found in its links, anchors and footnotes, and nothing beside."""

from __future__ import annotations

import pytest

from orchestration.rules.citations import find_citations
from orchestration.rules.spoken_claims import MOST_CLAIMS


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("See [the survey](data/survey.csv).", ["data/survey.csv"]),
        ("见[调查](./data/survey.csv)。", ["data/survey.csv"]),
        ("![chart](<img/chart.png>)", ["img/chart.png"]),
        ('[a](notes.md "Title")', ["notes.md"]),
        ("[a](notes.md#part)", ["notes.md"]),
        ("[a](/docs/a%20b.md)", ["docs/a b.md"]),
        ("[a][1]\n\n[1]: data/one.csv", ["data/one.csv"]),
        ("P99 is 500 ms [L2: data/latency.csv row 4]", ["data/latency.csv"]),
        ("P99 是 500 毫秒【L2：data/latency.csv】", ["data/latency.csv"]),
        ("[a](one.md) and [b](one.md)", ["one.md"]),
        ("Claimed.[^1]\n\n[^1]: The survey.", []),
        ("Claimed.[^1]", ["[^1]"]),
        ("[a](https://example.org/a.md) [b](mailto:a@b.org) [c](//x.org/a) [d](#part)", []),
        ("[folder](data/)", []),
        ("P99 = 500 ms [L2: grafana], [L2: https://example.org/a.csv]", []),
        ("Write `[a](gone.md)`:\n\n```md\n[b](gone.md)[^9]\n```\n", []),
        ("no links", []),
    ],
)
def test_what_is_cited_is_found(text: str, paths: list[str]) -> None:
    assert [one.path for one in find_citations(text)] == paths


@pytest.mark.parametrize("part", ["[", "[a](", "[^", "`", "```\n", "[L1:", "[a]: ", "[a](b.md) "])
def test_hostile_text_ends_and_is_bounded(part: str) -> None:
    assert len(find_citations(part * 60_000)) <= MOST_CLAIMS


def test_hundred_are_enough() -> None:
    text = " ".join(f"[a](f{n}.md)" for n in range(500))
    assert len(find_citations(text)) == MOST_CLAIMS
