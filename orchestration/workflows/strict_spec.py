"""`/strict-spec`: Requirement, DesignAgent, TaskPlan, then one SubCoding task an open box.

Source: DESIGN section 11, FORMATS ("strict-spec documents"), source document 004 section 6.2.
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Change, Flow, Steps


def build_steps(change: Change) -> Steps:
    """Write the steps of a feature."""
    spec, tech = change.path(stages.SPEC_MD), change.path(stages.TECH_MD)
    plan = change.path(stages.PLAN_MD)
    return [
        {
            "id": stages.REQUIREMENT,
            "title": change.said("Write the specification", "编写需求文档"),
            "action": change.action(
                f"Turn the request into {spec}: 5W2H, stories P1 to P3 with 3 to 5 acceptance "
                "scenarios and failure paths, FR-001 [story N], SC-001, a SMART check list. Ask "
                "Sir in at most 3 rounds of 1 to 5 questions where something is open.",
                f"把需求写成 {spec}：5W2H、P1 到 P3 的用户故事（各有 3 到 5 个验收场景和"
                "失败路径）、"
                "FR-001 [故事 N]、SC-001、SMART 检查清单。有未定之处时向 Sir 提问，最多 3 轮，"
                "每轮 1 到 5 个问题。",
            ),
            "role": "Requirement",
            "scope": [spec],
            "delegate": False,
        },
        {
            "id": stages.DESIGN,
            "title": change.said("Design it", "编写技术设计"),
            "action": change.action(
                f"Write {tech} from {spec}: C4 levels, modules and interfaces, data model, "
                "decisions with context, options, choice and trade-off. Sir confirms it once.",
                f"根据 {spec} 编写 {tech}：C4 各层、模块与接口、数据模型、架构决策"
                "（背景、选项、选择、权衡）。由 Sir 确认一次。",
            ),
            "depends_on": [stages.REQUIREMENT],
            "role": "DesignAgent",
            "scope": [tech],
            "delegate": False,
        },
        {
            "id": stages.PLAN,
            "title": change.said("Plan the work", "拆分开发任务"),
            "action": change.action(
                f"Write {plan} from {spec} and {tech}: one to three numbered boxes, the first "
                "demonstrable; each names change id, spec path, design path, function and "
                "requirement ids; every requirement is covered exactly once.",
                f"根据 {spec} 与 {tech} 编写 {plan}：一到三个编号复选框，第一项可演示；"
                "每项写明变更、需求文档、设计文档、功能和需求编号；每条需求恰好覆盖一次。",
            ),
            "depends_on": [stages.DESIGN],
            "role": "TaskPlan",
            "scope": [plan],
            "delegate": False,
        },
        {
            "id": stages.IMPLEMENT,
            "title": change.said("Implement the boxes of plan.md", "执行 plan.md 的各项任务"),
            "action": change.action(
                f"Carry out the open boxes of {plan}, one SubCoding task each.",
                f"执行 {plan} 中未完成的各项，每项一个 SubCoding 任务。",
            ),
            "depends_on": [stages.PLAN],
            "role": "StrictSpec",
        },
    ]


FLOW = Flow(
    name=stages.STRICT_SPEC,
    role="StrictSpec",
    build=build_steps,
    documents={
        stages.SPEC_MD: (stages.REQUIREMENT,),
        stages.TECH_MD: (stages.DESIGN,),
        stages.PLAN_MD: (stages.PLAN,),
    },
)
