"""S1: bands of everyday texts, what follows from a total, scores from outside, upgrades."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from orchestration.errors import Invalid
from orchestration.policy import DEFAULT_POLICY, Policy
from orchestration.rules.evidence import DIMENSIONS
from orchestration.rules.scoring import (
    COLLABORATION,
    Dimensions,
    complexity_of,
    parse_external_score,
    risk_of,
    route_of,
    score,
    score_of,
    verification_layers,
)
from orchestration.states import Complexity, RiskLevel, Route

SIMPLE = [
    "给这个函数加个注释",
    "写一个Python脚本统计日志里的错误数量",
    "分析上个月的销售数据",
    "创建一个文件夹",
    "部署到测试环境",
    "写一份完整的会议纪要",
    "翻译这篇文章成英文",
    "修复登录页面的按钮样式",
    "把标题改成红色",
    "好的",
    "",
    "fix the typo in README",
    "write a unit test for parse_date",
    "Translate this paragraph into French",
    "Summarise the quarterly report and email it to the team",
    "Rename the variable foo to bar",
    "Send the minutes to Bob",
]
MEDIUM = [
    "调研一下主流的向量数据库，写一份对比报告",
    "重构支付模块",
    "把MySQL数据库迁移到PostgreSQL",
    "先备份数据库，然后升级PostgreSQL，最后验证",
    "优化整个系统的性能",
    "实现订单 CRUD + 支付对接 + 库存扣减",
    "设计数据库表结构",
    "策划公司年会，包括场地、餐饮、节目和预算",
    "用编译器技术优化内核",
    "Refactor the payment module",
    "Set up CI for the repo with GitHub Actions",
    "First back up the database, then upgrade PostgreSQL, finally verify the result",
    "Research the competitors, compare their pricing, and write a market-entry strategy",
    "Plan a two-day conference: venue, catering, speakers, budget and marketing",
]
COMPLEX = [
    "从零搭建一个带用户认证的电商系统",
    "实现用户认证 + 商品管理 + 订单系统",
    "设计并实现一个端到端的推荐系统，包括数据采集、特征工程、模型训练、在线服务和监控",
    "开发一个微信小程序商城，支持支付、订单、库存管理，从零开始",
    "搭建全公司的监控系统，对接多个系统",
    "Build a full-stack e-commerce platform from scratch with user authentication and payments",
    "Migrate our whole infrastructure from AWS to Kubernetes on GCP with zero downtime",
    "Design the system architecture of a multi-tenant SaaS with billing, SSO and audit logs",
    "Build a mobile app for iOS and Android with a backend, a database and analytics",
]


@pytest.mark.parametrize(
    ("text", "route", "lowest", "highest"),
    [(text, Route.DIRECT, 5, 8) for text in SIMPLE]
    + [(text, Route.LIGHT_PLAN, 9, 15) for text in MEDIUM]
    + [(text, Route.THREE_STEP, 16, 25) for text in COMPLEX],
)
def test_everyday_texts_land_in_their_band(
    text: str, route: Route, lowest: int, highest: int
) -> None:
    result = score(text, DEFAULT_POLICY)
    assert lowest <= result.total <= highest, result
    assert result.route is route
    assert result.total == sum(result.dimensions)


def test_the_source_example_scores_as_the_source_says() -> None:
    assert score("从零搭建一个带用户认证的电商系统", DEFAULT_POLICY).total == 22


@pytest.mark.parametrize("text", [*MEDIUM, *COMPLEX])
def test_every_raised_dimension_shows_its_evidence(text: str) -> None:
    result = score(text, DEFAULT_POLICY)
    explained = {evidence.dimension for evidence in result.evidence}
    raised = {name for name in DIMENSIONS if getattr(result.dimensions, name) > 1}
    assert raised <= explained


@pytest.mark.parametrize("text", [*SIMPLE, *MEDIUM, *COMPLEX])
def test_evidence_points_at_the_words_in_the_text(text: str) -> None:
    for evidence in score(text, DEFAULT_POLICY).evidence:
        assert evidence.dimension in DIMENSIONS
        if evidence.offset is not None and "…" not in evidence.text:
            found = text[evidence.offset : evidence.offset + len(evidence.text)]
            assert found == evidence.text
        assert evidence.text or evidence.count >= 1


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("1. 买菜\n2. 做饭", "steps", 1),
        ("1. 买菜\n2. 做饭\n3. 洗碗", "steps", 3),
        ("\n".join(f"{n}. 事" for n in range(1, 6)), "steps", 3),
        ("\n".join(f"{n}. 事" for n in range(1, 7)), "steps", 5),
        ("收集、清洗、解析、统计、汇总、对比", "steps", 5),
        ("数据库", "domains", 1),
        ("支付和数据库", "domains", 3),
        ("支付、数据库、前端和合同", "domains", 5),
        ("密码学", "domains", 5),
        ("调研", "uncertainty", 3),
        ("想办法，没头绪，调研一下", "uncertainty", 5),
        ("改配置", "failure_cost", 2),
        ("改支付页面", "failure_cost", 3),
        ("做数据迁移", "failure_cost", 4),
        ("这一步不可逆", "failure_cost", 5),
        ("an irreversible step", "failure_cost", 5),
        ("用 Redis", "toolchain", 1),
        ("用 Redis 和 Kafka", "toolchain", 3),
        ("用 Redis、Kafka、Docker 和 Excel", "toolchain", 5),
        ("打通多个系统", "toolchain", 5),
    ],
)
def test_dimensions_follow_what_is_counted(text: str, dimension: str, value: int) -> None:
    assert getattr(score(text, DEFAULT_POLICY).dimensions, dimension) == value


@pytest.mark.parametrize(
    ("total", "depth", "route"),
    [
        (5, 0, Route.DIRECT),
        (8, 0, Route.DIRECT),
        (9, 0, Route.LIGHT_PLAN),
        (15, 0, Route.LIGHT_PLAN),
        (16, 0, Route.THREE_STEP),
        (25, 0, Route.THREE_STEP),
        (16, 2, Route.THREE_STEP),
        (16, 3, Route.LIGHT_PLAN),
        (25, 3, Route.LIGHT_PLAN),
        (15, 3, Route.LIGHT_PLAN),
        (8, 3, Route.DIRECT),
    ],
)
def test_route_follows_total_and_depth(total: int, depth: int, route: Route) -> None:
    assert route_of(total, depth, DEFAULT_POLICY) is route


def test_a_policy_with_less_depth_stops_planning_earlier() -> None:
    policy = Policy.parse({"limits": {"depth": 1}})
    assert route_of(20, 0, policy) is Route.THREE_STEP
    assert route_of(20, 1, policy) is Route.LIGHT_PLAN


def test_thresholds_come_from_the_policy() -> None:
    policy = Policy.parse({"thresholds": {"s1_simple_threshold": 5, "s1_medium_threshold": 6}})
    assert [route_of(total, 0, policy) for total in (5, 6, 7)] == [
        Route.DIRECT,
        Route.LIGHT_PLAN,
        Route.THREE_STEP,
    ]


@pytest.mark.parametrize(
    ("cost", "risk"),
    [
        (1, RiskLevel.LOW),
        (2, RiskLevel.LOW),
        (3, RiskLevel.MEDIUM),
        (4, RiskLevel.MEDIUM),
        (5, RiskLevel.HIGH),
    ],
)
def test_risk_follows_failure_cost(cost: int, risk: RiskLevel) -> None:
    assert risk_of(cost) is risk


@pytest.mark.parametrize(
    ("total", "risk"), list(itertools.product((5, 8, 9, 15, 16, 25), list(RiskLevel)))
)
def test_high_risk_makes_any_work_complex(total: int, risk: RiskLevel) -> None:
    by_total = (
        Complexity.LOW if total <= 8 else Complexity.MEDIUM if total <= 15 else Complexity.HIGH
    )
    expected = Complexity.HIGH if risk in (RiskLevel.HIGH, RiskLevel.CRITICAL) else by_total
    assert complexity_of(total, risk, DEFAULT_POLICY) is expected


def test_an_irreversible_text_is_complex_but_keeps_its_route() -> None:
    result = score("这一步不可逆", DEFAULT_POLICY)
    assert result.dimensions.failure_cost == 5
    assert result.risk_level is RiskLevel.HIGH
    assert result.complexity is Complexity.HIGH
    assert result.route is Route.LIGHT_PLAN


@pytest.mark.parametrize("text", ["删除所有用户数据", "rm -rf build", "Deploy it to production"])
def test_a_red_line_is_critical(text: str) -> None:
    result = score(text, DEFAULT_POLICY)
    assert result.risk_level is RiskLevel.CRITICAL
    assert result.complexity is Complexity.HIGH
    assert result.dimensions.failure_cost == 5
    assert "red_line" in {evidence.reason for evidence in result.evidence}


@pytest.mark.parametrize(
    ("complexity", "handshake", "annotation", "layers", "effort", "thinking"),
    [
        (Complexity.LOW, False, "minimal", ("L1", "L2"), "low", "disabled"),
        (Complexity.MEDIUM, True, "full", ("L1", "L2", "L3"), "medium", "adaptive"),
        (Complexity.HIGH, True, "full", ("L1", "L2", "L3", "L4"), "high", "adaptive"),
    ],
)
def test_collaboration_follows_complexity(
    *,
    complexity: Complexity,
    handshake: bool,
    annotation: str,
    layers: tuple[str, ...],
    effort: str,
    thinking: str,
) -> None:
    mode = COLLABORATION[complexity]
    assert (mode.handshake, mode.annotation, mode.layers) == (handshake, annotation, layers)
    assert (mode.effort, mode.thinking) == (effort, thinking)


@pytest.mark.parametrize(
    ("complexity", "risk"), list(itertools.product(list(Complexity), list(RiskLevel)))
)
def test_a_human_looks_only_at_critical_complex_work(
    complexity: Complexity, risk: RiskLevel
) -> None:
    layers = verification_layers(complexity, risk)
    assert layers[:2] == ("L1", "L2")
    is_critical = complexity is Complexity.HIGH and risk is RiskLevel.CRITICAL
    assert ("L5" in layers) is is_critical


def test_all_totals_of_the_schema_are_possible() -> None:
    totals = {
        score_of(Dimensions(*values), DEFAULT_POLICY).total
        for values in itertools.product((1, 3, 5), repeat=5)
    }
    assert min(totals) == 5
    assert max(totals) == 25


def test_a_score_is_json() -> None:
    record = score(COMPLEX[0], DEFAULT_POLICY).as_json()
    assert json.loads(json.dumps(record)) == record
    assert set(record["dimensions"]) == set(DIMENSIONS)
    assert record["route"] == "three_step"


@pytest.mark.parametrize(
    "text",
    [
        "\x00" * 1_000,
        "\ud800重构",
        "\u202e系统\u202c",
        "先" * 333_333,
        "build " * 100_000,
        "、" * 300_000,
        "a, " * 300_000,
        "1. x\n" * 100_000,
        "python " * 100_000,
        "😀" * 1_000,
    ],
)
def test_hostile_texts_get_a_score(text: str) -> None:
    result = score(text, DEFAULT_POLICY)
    assert 5 <= result.total <= 25
    assert len(result.evidence) < 500


GOOD: dict[str, Any] = {
    "dimensions": {
        "steps": 3,
        "domains": 3,
        "uncertainty": 2,
        "failure_cost": 1,
        "toolchain": 1,
    },
    "rationale": "three steps",
}


def with_dimension(name: str, value: object) -> dict[str, Any]:
    """Return the good document with one dimension changed."""
    return {**GOOD, "dimensions": {**GOOD["dimensions"], name: value}}


def external_faults(document: object) -> dict[str, str]:
    """Parse what must be refused, and return its faults by path."""
    with pytest.raises(Invalid) as caught:
        parse_external_score(document)
    assert caught.value.status == 422
    return {fault["path"]: fault["message"] for fault in caught.value.errors}


def test_an_external_score_is_routed_like_our_own() -> None:
    result = parse_external_score(GOOD)
    assert result.total == 10
    assert result.route is Route.LIGHT_PLAN
    assert result.complexity is Complexity.MEDIUM
    assert result.rationale == "three steps"


def test_an_external_score_respects_depth_policy_and_red_lines() -> None:
    top = {**GOOD, "dimensions": dict.fromkeys(DIMENSIONS, 4)}
    assert parse_external_score(top).route is Route.THREE_STEP
    assert parse_external_score(top, depth=3).route is Route.LIGHT_PLAN
    assert parse_external_score(GOOD, has_red_line=True).risk_level is RiskLevel.CRITICAL
    low = Policy.parse({"thresholds": {"s1_simple_threshold": 12}})
    assert parse_external_score(GOOD, low).route is Route.DIRECT


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("value", [0, 6, -1, 3.0, "3", True, None, [], {}, float("nan")])
def test_a_dimension_out_of_range_is_named(name: str, value: object) -> None:
    assert external_faults(with_dimension(name, value)) == {
        f"dimensions.{name}": "must be a whole number from 1 to 5"
    }


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("value", [1, 5])
def test_the_ends_of_the_range_are_accepted(name: str, value: int) -> None:
    result = parse_external_score(with_dimension(name, value))
    assert getattr(result.dimensions, name) == value


def test_every_fault_is_listed_at_once() -> None:
    faults = external_faults({"dimensions": {"steps": 9, "domains": 2}})
    assert set(faults) == {
        "rationale",
        "dimensions.steps",
        "dimensions.uncertainty",
        "dimensions.failure_cost",
        "dimensions.toolchain",
    }
    assert faults["dimensions.toolchain"] == "is missing"


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        (None, {"", "rationale", "dimensions"}),
        ([], {"", "rationale", "dimensions"}),
        ("5", {"", "rationale", "dimensions"}),
        ({}, {"rationale", "dimensions"}),
        ({**GOOD, "dimensions": [1, 2, 3, 4, 5]}, {"dimensions"}),
        ({**GOOD, "rationale": 3}, {"rationale"}),
        ({**GOOD, "rationale": "x" * 4_001}, {"rationale"}),
    ],
)
def test_documents_of_the_wrong_shape_are_refused(document: object, paths: set[str]) -> None:
    assert set(external_faults(document)) == paths


def test_unknown_keys_are_left_to_the_caller() -> None:
    assert parse_external_score({**GOOD, "model": "x"}).total == 10
