"""Declared and proven trust, anchors in text, acceptance by risk."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.rules.tool_record import OBSERVED, SELF_REPORTED, Call
from orchestration.rules.trust import (
    declared_trust,
    is_proven,
    proof_of,
    proven_trust,
    read_anchors,
    to_validate,
    trust_band,
    unvalidated,
)
from orchestration.states import Complexity, RiskLevel

NONE = '"这个服务延迟高是因为 DB 慢查询导致的"'
SOME = '''"这个服务 P99 延迟 = 500ms [L2: 监控数据]，
   其中 DB 查询占 400ms [L2: trace 数据]，
   所以瓶颈在 DB"'''
MOST = '''"这个服务 P99 延迟 = 500ms [L2: 监控数据]，
   DB 查询占 400ms [L2: trace 数据]，
   该查询缺少索引 [L1: EXPLAIN 输出]，
   加索引后延迟降至 50ms [L1: 测试环境验证]"'''


@pytest.mark.parametrize(("text", "density"), [(NONE, 0), (SOME, 0.67), (MOST, 0.8)])
def test_worked_examples_of_anchor_density(text: str, density: float) -> None:
    assert round(read_anchors(text).density, 2) == density


def test_anchors_keep_their_level_and_words() -> None:
    anchors = read_anchors(MOST).anchors
    assert [one.anchor_level for one in anchors] == [2, 2, 1, 1]
    assert anchors[2].text == "EXPLAIN 输出"


def test_english_reads_the_same() -> None:
    text = (
        "P99 is 500.5 ms [L2: grafana]. The query takes 400 ms [L2: trace]. "
        "So the database is the bottleneck."
    )
    assert (len(read_anchors(text).anchors), read_anchors(text).steps) == (2, 3)


@pytest.mark.parametrize("text", ["", "…", "[L2: only an anchor]", "[L9: no level] fact"])
def test_density_is_between_nothing_and_one(text: str) -> None:
    assert 0 <= read_anchors(text).density <= 1


def claims() -> list[dict[str, Any]]:
    """The four assertions of the source's message."""
    grafana, trace = ["curl", "http://grafana"], ["python", "mlog_log.py"]
    return [
        {"claim": "P99 延迟 500ms", "confidence": "verified", "evidence": "grafana",
         "verify_command": {"argv": grafana}, "verify_text": " ".join(grafana)},
        {"claim": "DB 查询占 80% 耗时", "confidence": "verified", "evidence": "trace",
         "verify_command": {"argv": trace}, "verify_text": " ".join(trace)},
        {"claim": "根因是缺少联合索引", "confidence": "inferred", "reasoning": "单列索引",
         "verify_command": {"argv": ["explain"]}, "verify_text": "explain"},
        {"claim": "加索引后预计延迟降至 50ms", "confidence": "uncertain", "reasoning": "经验"},
    ]  # fmt: skip


def test_declared_counts_words_and_proven_counts_proofs() -> None:
    rows = claims()
    assert declared_trust(rows) == 0.5
    assert proven_trust(rows) == 0
    rows[1]["proof"] = {"grade": OBSERVED, "ok": True}
    rows[2]["proof"] = {"grade": SELF_REPORTED, "ok": True}
    rows[0]["proof"] = {"grade": "rerun", "ok": False}
    assert proven_trust(rows) == 0.25
    assert (declared_trust([]), proven_trust([])) == (0, 0)


@pytest.mark.parametrize(
    ("trust", "band"),
    [(0, "low"), (0.33, "low"), (0.34, "partial"), (0.74, "partial"), (0.75, "high"), (1, "high")],
)
def test_bands(trust: float, band: str) -> None:
    assert trust_band(trust) == band


@pytest.mark.parametrize(
    ("complexity", "risk", "indexes"),
    [
        (Complexity.LOW, RiskLevel.LOW, []),
        (Complexity.LOW, RiskLevel.MEDIUM, [2]),
        (Complexity.MEDIUM, RiskLevel.LOW, [0, 1, 2]),
        (Complexity.HIGH, RiskLevel.CRITICAL, [0, 1, 2]),
        (Complexity.LOW, RiskLevel.HIGH, [0, 1, 2]),
    ],
)
def test_risk_says_which_commands_of_claims_run(
    complexity: Complexity, risk: RiskLevel, indexes: list[int]
) -> None:
    assert to_validate(claims(), complexity, risk) == indexes


def test_high_risk_wants_every_unverified_claim_validated() -> None:
    rows = claims()
    assert unvalidated(rows, RiskLevel.MEDIUM) == []
    assert unvalidated(rows, RiskLevel.HIGH) == [rows[2]["claim"], rows[3]["claim"]]
    rows[2]["proof"] = {"grade": "rerun", "ok": True}
    assert unvalidated(rows, RiskLevel.CRITICAL) == [rows[3]["claim"]]


def call(command: str, *, grade: str = OBSERVED, ok: bool = True) -> Call:
    return Call("7", "Bash", command, "ok" if ok else "failed", 0 if ok else 1, "", grade)


def test_proof_comes_from_our_run_before_any_record() -> None:
    claim = claims()[1]
    ours = {"ok": False, "exit_code": 3, "outcome": "failed"}
    assert proof_of(claim, [call("python mlog_log.py")], ours)["ok"] is False
    seen = proof_of(claim, [call("bash -lc 'python mlog_log.py'")], None)
    assert (seen["grade"], seen["ok"], seen["evidence"]) == (OBSERVED, True, ["7"])


def test_newest_run_of_a_claims_command_counts() -> None:
    claim = claims()[1]
    proof = proof_of(
        claim, [call("python mlog_log.py"), call("python mlog_log.py", ok=False)], None
    )
    assert not is_proven({**claim, "proof": proof})


@pytest.mark.parametrize("command", ["true", "echo done", "cat report.md", "pytest | tail"])
def test_trivial_commands_prove_nothing(command: str) -> None:
    claim = {"claim": "c", "confidence": "verified", "evidence": "e", "verify_text": command}
    proof = proof_of(claim, [call(command)], None)
    assert (proof["grade"], proof["ok"]) == (SELF_REPORTED, None)


def test_word_verified_changes_no_grade() -> None:
    said = {"claim": "c", "confidence": "verified", "evidence": "I looked", "verify_text": ""}
    assert proof_of(said, [], None)["grade"] == SELF_REPORTED
    guess = {"claim": "c", "confidence": "inferred", "reasoning": "r"}
    assert proof_of(guess, [], None)["grade"] == "none"
