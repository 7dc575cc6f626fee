"""Made-up rows of an inbox and a decision, for rendering the parts. Times stand around NOW."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboard.cards import make_dock
from dashboard.charts import Impact, ImpactItem, ImpactNode
from dashboard.drawings import IMPACT_BOX, Link, lay_out
from dashboard.highlighting import DiffSet, diff_set
from dashboard.presenters import (
    decision_label,
    defect_label,
    make_navigation,
    output_view,
    task_label,
)
from dashboard.shapes import (
    Dock,
    InboxGroup,
    InboxRow,
    Navigation,
    OutputView,
    ProjectLink,
    Round,
    RowTravel,
)
from dashboard.verdicts import GROUPS, KINDS, MEDIUM_ONLY
from dashboard.vocabulary import Label, Role
from orchestration.contracts.options import options_for
from orchestration.rules.diffs import parse_diff
from orchestration.states import DecisionKind

NOW = datetime(2026, 11, 30, 15, 2, 14, tzinfo=UTC)
DIGEST = "9f2c41d7" + "0" * 52 + "e08b"
TITLE = "退款超时后订单停在 REFUNDING，清扫任务再也取不到它"
PATCH = """--- a/payments/state_machine.py
+++ b/payments/state_machine.py
@@ -88,9 +88,12 @@ sweep_refunds
 def sweep_refunds(now=None):
     now = now or timezone.now()
     stuck = Order.objects.filter(
         state=OrderState.REFUNDING,
-        refund_requested_at__lt=now - TIMEOUT,
+        refund_deadline__lte=now,
     )
-    for order in stuck:
-        order.mark_refund_failed()
+    for order in stuck.select_for_update():
+        order.transition(
+            OrderState.REFUNDABLE,
+            reason="refund_timeout",
+        )
     return stuck.count()
--- a/payments/models.py
+++ b/payments/models.py
@@ -10,16 +10,18 @@ class Order(models.Model):
     key = models.CharField(max_length=40)
     state = models.CharField(max_length=20)
+    refund_deadline = models.DateTimeField(null=True)
     one = 1
     two = 2
     three = 3
     four = 4
     five = 5
     six = 6
     seven = 7
     eight = 8
     nine = 9
     ten = 10
     eleven = 11
     twelve = 12
+    thirteen = 13  # 备注
     def __str__(self):
         return self.key
"""
OUTPUT = """$ pytest tests/payments/test_refund_timeout.py -q
tests/payments/test_refund_timeout.py ......F.......
    def test_timeout_returns_to_refundable(order, clock):
        order.request_refund(amount=1200)
        clock.advance(minutes=31)
        sweep_refunds()
>       assert order.reload().state == OrderState.REFUNDABLE
E       AssertionError: assert <OrderState.REFUNDING> == <OrderState.REFUNDABLE>
1 failed, 46 passed in 3.82s
"""


@dataclass(frozen=True)
class SampleDecision:
    """An open decision with the fields the dock reads."""

    kind: str = DecisionKind.MEDIUM_DEFECT.value
    version: int = 2
    digest: str = DIGEST
    options: list[Any] = field(default_factory=list)
    deadline: datetime | None = None
    on_expiry: dict[str, Any] | None = None


def sample_dock(kind: DecisionKind = DecisionKind.MEDIUM_DEFECT, **params: Any) -> Dock:
    """A dock of any kind with the parameters of the picture."""
    shown: dict[str, Any] = {
        "round": 2,
        "rounds": 3,
        "step": "2b",
        "blocks": 5,
        "version": 2,
        "next_version": 3,
        "root": "PAY-12",
        "next_attempt": 2,
        "max_attempts": 3,
        "has_fix": True,
        "commands": 6,
    }
    decision = SampleDecision(kind=kind.value, options=list(options_for(kind, shown | params)))
    return make_dock(decision, id="7", action="/decisions/7/decide/", pause_url="/pause/")


def sample_row(id: str, title: str, where: list[str], minutes: int, **more: Any) -> InboxRow:
    """One row of the list; the kind sets its icon."""
    kind = DecisionKind(more.pop("kind", "medium_defect"))
    return InboxRow(
        id=id,
        url=f"/decisions/{id}/",
        pane_url=f"/inbox/{id}/",
        icon=KINDS[kind].icon,
        kind=kind.value,
        title=title,
        where=where,
        opened_at=NOW - timedelta(minutes=minutes),
        **more,
    )


def sample_groups() -> list[InboxGroup]:
    """The list of the picture."""
    return [
        InboxGroup("1", GROUPS[1], [stopped_row()]),
        InboxGroup("2", MEDIUM_ONLY, defect_rows()),
        *waiting_groups(),
    ]


def stopped_row() -> InboxRow:
    """A stopped project."""
    return sample_row(
        "1", "迁移历史对账数据到新账本", ["历史账本迁移", "LED-7", "attempt 3 of 3"], 42,
        kind="max_retries", is_p0=True, is_selectable=False, blocks=11,
    )  # fmt: skip


def defect_rows() -> list[InboxRow]:
    """Medium defects, the first selected."""
    return [
        sample_row("7", TITLE, ["支付平台", "PAY-12 / 2b", "fix round 2 of 3"], 184, blocks=5,
                   is_current=True, version=2),
        sample_row("8", "幂等键冲突时返回 500，规格要求 409",
                   ["支付平台", "PAY-12 / 2a", "fix round 1 of 3"], 80, blocks=3),
        sample_row("9", "第 4 章的统计口径与附录 B 不一致",
                   ["2026 年度报告", "REP-3 / 1c", "no fix proposed"], 48, blocks=2,
                   is_unseen=True),
        sample_row("10", "Runbook step 6 names a host that was retired in March",
                   ["机房搬迁演练", "OPS-4 / 2", "fix round 1 of 3"], 12, blocks=1, is_unseen=True),
    ]  # fmt: skip


def waiting_groups() -> list[InboxGroup]:
    """Plans and commands, a question, a notice."""
    plans = [
        sample_row("11", "机房搬迁演练：核心交换机割接方案",
                   ["Plan rejected", "机房搬迁演练", "OPS-2"], 120,
                   kind="plan_rejected", blocks=8),
        sample_row("12", "6 commands outside the allow-list",
                   ["Commands", "支付平台", "PAY-14"], 26, kind="command_approval", blocks=3),
    ]  # fmt: skip
    question = sample_row(
        "13", "海外收入按年末汇率还是按全年平均汇率折算？",
        ["Question", "2026 年度报告", "REP-3 / 1a"], 300, kind="waiting_human", blocks=4,
    )  # fmt: skip
    notice = sample_row(
        "14",
        "High 缺陷已自动修复：回调验签跳过空签名",
        ["支付平台", "PAY-12 / 1c"],
        240,
        kind="high_notice",
    )
    return [
        InboxGroup("3", GROUPS[3], plans),
        InboxGroup("4", GROUPS[4], [question]),
        InboxGroup("5", GROUPS[5], [notice]),
    ]


def sample_travels() -> list[InboxRow]:
    """A row in each state of a verdict on its way."""
    states = (
        ("21", "退款超时后订单停在 REFUNDING", RowTravel("signing", "Signing: approve the fix")),
        ("22", "幂等键冲突时返回 500，规格要求 409",
         RowTravel("signed", "Approved. Fix round 1 of 3 starts.", at=NOW)),
        ("23", "第 4 章的统计口径与附录 B 不一致",
         RowTravel("refused", "Not signed: already rejected by Sir at 15:01 in another window.",
                   url="/decisions/23/")),
        ("24", "Runbook step 6 names a retired host",
         RowTravel("changed", "Not signed: the fix changed at 15:02. Your text is kept.",
                   url="/decisions/24/")),
    )  # fmt: skip
    return [sample_row(id, title, [], 1, travel=travel) for id, title, travel in states]


def sample_diff() -> DiffSet:
    """The fix of the picture."""
    return diff_set(parse_diff(PATCH))


def sample_output() -> OutputView:
    """The failing check of the picture."""
    return output_view(OUTPUT, title="TC-014 · AC-07", exit_code=1)


def sample_rounds() -> list[Round]:
    """Earlier rounds of the picture."""
    bad = Role.RED
    return [
        Round("Step output", "v1 by coder-03", Label("circle-x", "Verify failed", bad), "",
              "TC-014", "#e1", "exit 1", NOW - timedelta(hours=4, minutes=50)),
        Round("Fix round 1", "You asked for changes: “do not lower the timeout”",
              Label("circle-x", "Did not verify", bad), "", "TC-014", "#e2", "same assertion",
              NOW - timedelta(hours=4, minutes=11)),
        Round("Fix round 2", "Deadline column instead of the request time",
              decision_label("open"), "", "TC-014", "#e3", "before the fix",
              NOW - timedelta(hours=4, minutes=4), is_current=True),
    ]  # fmt: skip


def sample_impact() -> Impact:
    """The impact of the picture."""
    keys = ["1c", "1d", "2b", "2e", "3a", "3b", "3c", "3d"]
    links = [
        Link("1c", "2b", "blocker"), Link("1d", "2b", "blocker"), Link("2b", "2e", "met"),
        Link("2e", "3a", "met"), Link("2e", "3b", "met"), Link("3a", "3c", "met"),
        Link("3b", "3c", "met"), Link("3b", "3d", "met"),
    ]  # fmt: skip
    layout = lay_out(keys, links, IMPACT_BOX)
    looks = {"1c": "locked", "1d": "locked", "2b": "subject"}
    nodes = [
        ImpactNode(key, place.x, place.y, looks.get(key, "waiting"))
        for key, place in layout.places.items()
    ]
    pending = task_label("pending").icon
    items = [
        ImpactItem("1c", "回调验签加固", "lock", "to re-verify"),
        ImpactItem("1d", "定义目标状态机", "lock", "to re-verify"),
        ImpactItem("2e", "风控规则适配", pending, "freed"),
        ImpactItem("3a", "对账导出", pending, "freed"),
        ImpactItem("3b", "退款通知", pending, "freed"),
    ]
    return Impact(
        "2 locked, 5 waiting", nodes, layout.edges, layout.width + 2, layout.height + 2, items,
        "2 more: 3c, 3d", "#more", "The fix edits models.py v1, which 1c and 1d read.",
    )  # fmt: skip


def sample_navigation(active: str = "inbox", *, current: str = "") -> Navigation:
    """The sidebar of the picture; links of pages that do not exist stay away."""
    names = (
        ("pay", "支付平台"), ("led", "历史账本迁移"),
        ("rep", "2026 年度报告"), ("ops", "机房搬迁演练"),
    )  # fmt: skip
    projects = [
        ProjectLink(
            slug, name, name[0], f"/projects/{slug}/", "active", slug == "led", slug == current
        )
        for slug, name in names
    ]
    return make_navigation(inbox_count=9, projects=projects, user_name="Sir", active=active)


FIXING = defect_label("fixing")
