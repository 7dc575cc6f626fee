"""`/strict-plan`: understand, explore, clarify, propose, then one SubCoding task a box.

Source: DESIGN section 11, FORMATS ("strict-plan documents"), source document 004 section 6.1.
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Flow, Stage

BEFORE_BOXES = (stages.UNDERSTAND, stages.EXPLORE, stages.CLARIFY, stages.PROPOSE)


STAGES = (
    Stage(
        key=stages.UNDERSTAND,
        role="StrictPlan",
        titles=("Understand the request", "理解需求"),
        texts=(
            "Say what the request asks for. Hand in JSON: summary, goals[], open_points[].",
            "说明需求要什么。提交 JSON：summary、goals[]、open_points[]。",
        ),
    ),
    Stage(
        key=stages.EXPLORE,
        role="QuickExplore",
        titles=("Explore the project", "探索项目"),
        texts=(
            "Explore what the change touches, read only. Hand in JSON: findings[], each "
            "with finding and evidence[]: path, line and a snippet of 5 to 20 lines, or "
            "commit and date.",
            "只读地探索变更涉及的部分。提交 JSON：findings[]，每条有 finding 和 evidence["
            "]：path、line 与 5 到 20 行的 snippet，或 commit 与 date。",
        ),
        after=stages.UNDERSTAND,
    ),
    Stage(
        key=stages.CLARIFY,
        role="StrictPlan",
        titles=("Clarify with Sir", "与 Sir 澄清需求"),
        texts=(
            "Put what is open to Sir in rounds of 1 to 5 questions, at most 3 rounds, "
            "then hand in what he decided.",
            "把未定之处向 Sir 提问，每轮 1 到 5 个问题，最多 3 轮；然后提交他的决定。",
        ),
        after=stages.EXPLORE,
    ),
    Stage(
        key=stages.PROPOSE,
        role="StrictPlan",
        titles=("Write proposal.md and task.md", "编写 proposal.md 与 task.md"),
        texts=(
            "Write <proposal.md> (title, reason, changes, impact) and <task.md> (one "
            "implementation section; boxes n.m with target object, purpose, method, "
            "dependencies, content). TaskCheck judges the list before it is final. Each may come "
            "as JSON instead, in an output titled proposal.md#json {title, reason, changes: "
            "[{text, breaking}], impact: {specs, code}} or task.md#json {items: [{number, title, "
            "target_object, purpose, method, depends_on, content}]}: the system writes it.",
            "编写 <proposal.md>（标题、原因、变更、影响）和 <task.md>（一个实施部分；编号"
            " n.m 的复选框，各有目标对象、修改目的、修改方式、相关依赖、修改内容）。清单"
            "定稿前由 TaskCheck 检查。也可以提交 JSON，标题为 proposal.md#json {title, reason, "
            "changes: [{text, breaking}], impact: {specs, code}} 或 task.md#json {items: "
            "[{number, title, target_object, purpose, method, depends_on, content}]}，"
            "由系统写成文档。",
        ),
        after=stages.CLARIFY,
        writes=(
            stages.PROPOSAL_MD,
            stages.TASK_MD,
        ),
    ),
    Stage(
        key=stages.IMPLEMENT,
        role="StrictPlan",
        titles=("Implement the boxes of task.md", "实施 task.md 的各项任务"),
        texts=(
            "Carry out the open boxes of <task.md>, one SubCoding task each.",
            "执行 <task.md> 中未完成的各项，每项一个 SubCoding 任务。",
        ),
        after=stages.PROPOSE,
        is_planned=True,
    ),
)
"""The stages, in order."""


FLOW = Flow(
    name=stages.STRICT_PLAN,
    role="StrictPlan",
    stages=STAGES,
    documents={stages.TASK_MD: BEFORE_BOXES},
)
