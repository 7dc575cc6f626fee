"""`/strict-plan`: understand, explore, clarify, propose, then one SubCoding task a box.

Source: DESIGN section 11, FORMATS ("strict-plan documents"), source document 004 section 6.1.
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Change, Flow, Steps

BEFORE_BOXES = (stages.UNDERSTAND, stages.EXPLORE, stages.CLARIFY, stages.PROPOSE)


def build_steps(change: Change) -> Steps:
    """Write the steps of a change."""
    proposal, task_md = change.path(stages.PROPOSAL_MD), change.path(stages.TASK_MD)
    return [
        {
            "id": stages.UNDERSTAND,
            "title": change.said("Understand the request", "理解需求"),
            "action": change.action(
                "Say what the request asks for. Hand in JSON: summary, goals[], open_points[].",
                "说明需求要什么。提交 JSON：summary、goals[]、open_points[]。",
            ),
            "role": "StrictPlan",
            "delegate": False,
        },
        {
            "id": stages.EXPLORE,
            "title": change.said("Explore the project", "探索项目"),
            "action": change.action(
                "Explore what the change touches, read only. Hand in JSON: findings[], each with "
                "finding and evidence[]: path, line and a snippet of 5 to 20 lines, or commit and "
                "date.",
                "只读地探索变更涉及的部分。提交 JSON：findings[]，每条有 finding 和 evidence[]："
                "path、line 与 5 到 20 行的 snippet，或 commit 与 date。",
            ),
            "depends_on": [stages.UNDERSTAND],
            "role": "QuickExplore",
            "delegate": False,
        },
        {
            "id": stages.CLARIFY,
            "title": change.said("Clarify with Sir", "与 Sir 澄清需求"),
            "action": change.action(
                "Put what is open to Sir in rounds of 1 to 5 questions, at most 3 rounds, then "
                "hand in what he decided.",
                "把未定之处向 Sir 提问，每轮 1 到 5 个问题，最多 3 轮；然后提交他的决定。",
            ),
            "depends_on": [stages.EXPLORE],
            "role": "StrictPlan",
            "delegate": False,
        },
        {
            "id": stages.PROPOSE,
            "title": change.said("Write proposal.md and task.md", "编写 proposal.md 与 task.md"),
            "action": change.action(
                f"Write {proposal} (title, reason, changes, impact) and {task_md} (one "
                "implementation section; boxes n.m with target object, purpose, method, "
                "dependencies, content). TaskCheck judges the list before it is final.",
                f"编写 {proposal}（标题、原因、变更、影响）和 {task_md}（一个实施部分；编号 n.m "
                "的复选框，各有目标对象、修改目的、修改方式、相关依赖、修改内容）。"
                "清单定稿前由 TaskCheck 检查。",
            ),
            "depends_on": [stages.CLARIFY],
            "role": "StrictPlan",
            "scope": [proposal, task_md],
            "delegate": False,
        },
        {
            "id": stages.IMPLEMENT,
            "title": change.said("Implement the boxes of task.md", "实施 task.md 的各项任务"),
            "action": change.action(
                f"Carry out the open boxes of {task_md}, one SubCoding task each.",
                f"执行 {task_md} 中未完成的各项，每项一个 SubCoding 任务。",
            ),
            "depends_on": [stages.PROPOSE],
            "role": "StrictPlan",
        },
    ]


FLOW = Flow(
    name=stages.STRICT_PLAN,
    role="StrictPlan",
    build=build_steps,
    documents={stages.TASK_MD: BEFORE_BOXES},
)
