"""`/strict-spec`: Requirement, DesignAgent, TaskPlan, then one SubCoding task an open box.

Source: DESIGN section 11, FORMATS ("strict-spec documents"), source document 004 section 6.2.
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Flow, Stage

STAGES = (
    Stage(
        key=stages.REQUIREMENT,
        role="Requirement",
        titles=("Write the specification", "编写需求文档"),
        texts=(
            "Turn the request into <spec.md>: 5W2H, stories P1 to P3 with 3 to 5 "
            "acceptance scenarios and failure paths, FR-001 [story N], SC-001, a SMART "
            "check list. Ask Sir in at most 3 rounds of 1 to 5 questions where something "
            "is open.",
            "把需求写成 <spec.md>：5W2H、P1 到 P3 的用户故事（各有 3 到 5 个验收场景和失"
            "败路径）、FR-001 [故事 N]、SC-001、SMART 检查清单。有未定之处时向 Sir 提问，"
            "最多 3 轮，每轮 1 到 5 个问题。",
        ),
        writes=(stages.SPEC_MD,),
    ),
    Stage(
        key=stages.DESIGN,
        role="DesignAgent",
        titles=("Design it", "编写技术设计"),
        texts=(
            "Write <tech.md> from <spec.md>: C4 levels, modules and interfaces, data "
            "model, decisions with context, options, choice and trade-off. Sir confirms "
            "it once.",
            "根据 <spec.md> 编写 <tech.md>：C4 各层、模块与接口、数据模型、架构决策（背景"
            "、选项、选择、权衡）。由 Sir 确认一次。",
        ),
        after=stages.REQUIREMENT,
        writes=(stages.TECH_MD,),
    ),
    Stage(
        key=stages.PLAN,
        role="TaskPlan",
        titles=("Plan the work", "拆分开发任务"),
        texts=(
            "Write <plan.md> from <spec.md> and <tech.md>: one to three numbered boxes, "
            "the first demonstrable; each names change id, spec path, design path, "
            "function and requirement ids; every requirement is covered exactly once. It may "
            "come as JSON instead, in an output titled plan.md#json {items: [{title, function, "
            "requirement_ids, demonstration, depends_on}]}: the system writes it.",
            "根据 <spec.md> 与 <tech.md> 编写 <plan.md>：一到三个编号复选框，第一项可演示"
            "；每项写明变更、需求文档、设计文档、功能和需求编号；每条需求恰好覆盖一次。也可以提交"
            " JSON，标题为 plan.md#json {items: [{title, function, requirement_ids, "
            "demonstration, depends_on}]}，由系统写成文档。",
        ),
        after=stages.DESIGN,
        writes=(stages.PLAN_MD,),
    ),
    Stage(
        key=stages.IMPLEMENT,
        role="StrictSpec",
        titles=("Implement the boxes of plan.md", "执行 plan.md 的各项任务"),
        texts=(
            "Carry out the open boxes of <plan.md>, one SubCoding task each.",
            "执行 <plan.md> 中未完成的各项，每项一个 SubCoding 任务。",
        ),
        after=stages.PLAN,
        is_planned=True,
    ),
)
"""The stages, in order."""


FLOW = Flow(
    name=stages.STRICT_SPEC,
    role="StrictSpec",
    stages=STAGES,
    documents={
        stages.SPEC_MD: (stages.REQUIREMENT,),
        stages.TECH_MD: (stages.DESIGN,),
        stages.PLAN_MD: (stages.PLAN,),
    },
)
