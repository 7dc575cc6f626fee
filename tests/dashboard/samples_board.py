"""Made-up rows of a board and a task page, for rendering the drawn parts. Times precede NOW."""

from __future__ import annotations

from datetime import datetime, timedelta

from dashboard.charts import (
    Band,
    Dimension,
    Gantt,
    GanttRow,
    GraphNode,
    LogLine,
    MasterRow,
    ScoreScale,
    Stage,
)
from dashboard.drawings import Link, Span, lay_out, make_axis, scale_parts
from dashboard.presenters import task_label
from dashboard.vocabulary import TASK_LABELS, Label, Role
from orchestration.states import TaskStatus
from tests.dashboard.samples import NOW

CLOSED = Label("circle-check", "closed, 4 of 4", Role.GREEN)
OPEN = Label("progress", "open, 0 of 6", Role.BLUE)
WAITS = Label("circle-dashed", "starts when phase 2 closes", Role.GREY)

STEPS = {
    1: [("1a", "盘点现有状态与转移", "done", "12 min"),
        ("1b", "收集线上异常样本", "done", "18 min"),
        ("1c", "回调验签加固", "done", "31 min"), ("1d", "定义目标状态机", "done", "44 min")],
    2: [("2a", "支付流程与幂等键", "waiting_human", "1 h"),
        ("2b", "退款流程", "waiting_human", "3 h"),
        ("2c", "分账与清算", "working", "7 min"), ("2d", "数据迁移脚本", "review", "QA"),
        ("2e", "风控规则适配", "pending", "needs 2a, 2b"),
        ("2f", "兼容旧状态的视图", "blocked", "by 2d")],
    3: [("3a", "对账导出", "pending", ""), ("3b", "退款通知", "pending", ""),
        ("3c", "灰度与回滚演练", "pending", ""), ("3d", "集成回归", "pending", "")],
}  # fmt: skip
LINKS = {
    1: [Link("1a", "1c", "met"), Link("1a", "1d", "met"), Link("1b", "1d", "met")],
    2: [Link("2a", "2e"), Link("2b", "2e"), Link("2d", "2f", "blocker")],
    3: [Link("3a", "3c"), Link("3b", "3c"), Link("3b", "3d")],
}


def sample_bands() -> list[Band]:
    """Three phases of the picture."""
    heads = {1: ("Understand", CLOSED), 2: ("Rebuild", OPEN), 3: ("Switch over", WAITS)}
    bands = []
    for phase, steps in STEPS.items():
        layout = lay_out([key for key, *_ in steps], LINKS[phase])
        nodes = [
            GraphNode(
                id=key, key=key, title=title, label=TASK_LABELS[TaskStatus(status)], fact=fact,
                url=f"/tasks/{key}/", x=layout.places[key].x, y=layout.places[key].y,
                topic=f"task:{key}", fragment_url=f"/nodes/{key}/", is_current=key == "2b",
                waits_for_sir=status == "waiting_human",
            )
            for key, title, status, fact in steps
        ]  # fmt: skip
        title, label = heads[phase]
        bands.append(
            Band(phase, f"Phase {phase}", title, label, str(label.word), nodes, layout.edges,
                 layout.width, layout.height)
        )  # fmt: skip
    return bands


def at(hour: int, minute: int) -> datetime:
    """A time of the sample's day."""
    return NOW.replace(hour=hour, minute=minute, second=0)


def sample_gantt() -> Gantt:
    """The timeline of the picture."""
    rows: list[tuple[str, str, list[Span]]] = [
        ("1a", "盘点现有状态与转移", [Span("work", at(9, 0), at(9, 12))]),
        ("1b", "收集线上异常样本", [Span("work", at(9, 0), at(9, 18))]),
        ("1c", "回调验签加固", [Span("work", at(9, 13), at(9, 44))]),
        ("1d", "定义目标状态机", [Span("work", at(9, 19), at(10, 3))]),
        ("2a", "支付流程与幂等键",
         [Span("work", at(10, 6), at(13, 6)), Span("failed", at(13, 6), at(13, 16)),
          Span("work", at(13, 16), at(13, 42)), Span("waiting", at(13, 42), NOW, "1 h 20")]),
        ("2b", "退款流程",
         [Span("work", at(10, 6), at(10, 24)), Span("failed", at(10, 24), at(10, 37)),
          Span("work", at(10, 37), at(11, 12)), Span("failed", at(11, 12), at(11, 20)),
          Span("work", at(11, 20), at(11, 58)),
          Span("waiting", at(11, 58), NOW, "waiting for you 3 h 04")]),
        ("2c", "分账与清算", [Span("running", at(14, 55), NOW)]),
        ("2d", "数据迁移脚本",
         [Span("work", at(12, 12), at(14, 36)), Span("running", at(14, 36), NOW)]),
        ("2f", "兼容旧状态的视图", [Span("work", at(13, 54), at(14, 36))]),
    ]  # fmt: skip
    axis = make_axis([span for _, _, spans in rows for span in spans], NOW)
    drawn = [
        GanttRow(key, title, [axis.bar(span) for span in spans], f"{key}: {len(spans)} spans")
        for key, title, spans in rows
    ]
    return Gantt(axis, drawn, "Timeline of 9 steps from 09:00 to now")


def sample_score() -> ScoreScale:
    """The score of the picture."""
    parts, x = scale_parts(19, 8, 15)
    dimensions = [
        Dimension("Steps", 5, "14 verbs in 3 clauses: 盘点, 定义, 迁移, 补齐, 双写, 核对"),
        Dimension("Domains", 3, "payments, data, risk"),
        Dimension("Uncertainty", 3, "“兼容旧状态” without a list"),
        Dimension("Failure cost", 5, "“线上订单”, irreversible migration"),
        Dimension("Toolchain", 3, "pytest, alembic, MariaDB"),
    ]
    return ScoreScale(19, x, parts, 8, 15, dimensions)


def sample_stages() -> list[Stage]:
    """The pipeline of the picture."""
    return [
        Stage("S0", "Filter", "412", "messages", [("direct 61 %", ""), ("expected 60", "quiet")]),
        Stage("S1", "Score", "161", "scored",
              [("direct 18 %", ""), ("expected 20", "quiet"), ("· light plan 15 %", ""),
               ("expected 15", "quiet")]),
        Stage("S2", "Plan and audit", "25", "three-step",
              [("of traffic 6 %", ""), ("expected 5", "quiet")]),
        Stage("S3", "Execute", "3", "running now",
              [("2 working, 1 in review", ""), ("· ", "quiet"), ("3 wait for you", "sir")]),
    ]  # fmt: skip


def sample_master() -> list[MasterRow]:
    """The master list of the picture."""
    rows = (
        ("PAY-12", "重构支付模块的状态机", "working", "S3", "", "4/14", 2),
        ("PAY-14", "接入新的清算渠道", "working", "S3", "", "0/6", 1),
        ("PAY-9", "日志脱敏：银行卡号", "working", "S3", "", "2/3", 0),
        ("PAY-15", "支付页首屏慢于 2 秒", "pending", "S0", "queued, place 3", "", 0),
        ("PAY-11", "对账差异日报", "done", "", "GO · 13:20", "5/5", 0),
        ("PAY-10", "更新渠道费率表", "done", "", "GO · 11:02", "1/1", 0),
        ("PAY-8", "回调验签加固方案调研", "done", "", "GO · yesterday", "3/3", 0),
        ("PAY-7", "旧网关下线", "failed", "S2", "NO-GO, re-plan 2 of 3", "2/6", 0),
        ("PAY-5", "渠道路由单元测试补全", "cancelled", "", "by Sir", "", 0),
    )
    return [
        MasterRow(key, title, f"?task={key}", task_label(status), stage, note, steps, waiting,
                  is_current=key == "PAY-12")
        for key, title, status, stage, note, steps, waiting in rows
    ]  # fmt: skip


def sample_log() -> list[LogLine]:
    """The log of the picture."""
    lines = (
        ("2f", "coder-04", "blocked: order_view.sql is being rewritten by 2d", ""),
        ("2f", "system", "lease ended, waits for 2d", ""),
        ("2c", "coder-05", "edit payments/fx.py +18 -0", ""),
        ("2d", "rules", "L1 format ✓ L2 logic ✓", ""),
        ("2d", "rules", "$ python -m compileall migrate_states.py", ""),
        ("2c", "coder-05", "progress: step 3 of 5", ""),
        ("2c", "coder-05", "$ pytest tests/settlement -q", ""),
        ("2c", "coder-05", "23 passed in 6.91s", ""),
        ("2d", "rules", "L3 anchors re-run: 3 of 4, 1 ✗", ""),
        ("9/3", "coder-02", "claimed, lease 15 min", ""),
        ("2d", "qa-sonnet-2", "reading migrate_states.py v1", ""),
        ("2c", "coder-05", "edit payments/settlement.py +41 -12", ""),
        ("9/3", "coder-02", "汇总日志字段 37 个，其中 4 个含卡号", ""),
        ("2c", "coder-05", "$ pytest tests/settlement -q", ""),
        ("2c", "coder-05", 'E KeyError: "fx_rate"', "bad"),
    )
    start = NOW - timedelta(seconds=8 * len(lines))
    return [
        LogLine(start + timedelta(seconds=8 * index), step, source, text, look)
        for index, (step, source, text, look) in enumerate(lines, start=1)
    ]
