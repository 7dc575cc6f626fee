"""`/test`: RunAndFix, TestPrepare, requirements confirmed by Sir, TestDesign, TestAndFix.

Source: DESIGN section 11, FORMATS ("Test workflow"), source document 004 section 4.
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Flow, Stage

STAGES = (
    Stage(
        key=stages.RUN,
        role="TddRunAndFix",
        titles=("Make it run", "验证可运行性"),
        texts=(
            "See that the project runs, and repair what keeps it from that, in at most 3 "
            "rounds. Hand in JSON: runnable, commands[], rounds, fixes[].",
            "验证项目可运行，修复阻碍，最多 3 轮。提交 JSON：runnable、commands[]、rounds"
            "、fixes[]。",
        ),
    ),
    Stage(
        key=stages.PREPARE,
        role="TddTestPrepare",
        titles=("Prepare the test guide", "准备测试指南"),
        texts=(
            "Write <TEST_GUIDE.md> in three parts: runnability commands, case "
            "management, test commands.",
            "编写 <TEST_GUIDE.md>，分三部分：可运行性命令、用例管理、测试命令。",
        ),
        after=stages.RUN,
        writes=(stages.TEST_GUIDE_MD,),
    ),
    Stage(
        key=stages.CONFIRM,
        role="TddTestPrepare",
        titles=("Confirm the requirements with Sir", "与 Sir 确认测试需求"),
        texts=(
            "Put the requirements that will be tested to Sir as questions, and hand in "
            "what he confirmed.",
            "把将要测试的需求作为问题提交给 Sir，然后提交他确认的内容。",
        ),
        after=stages.PREPARE,
    ),
    Stage(
        key=stages.TEST_DESIGN,
        role="TddTestDesign",
        titles=("Design the tests (RED)", "设计测试（RED）"),
        texts=(
            "Write tests that fail, at most 10 test points. Hand in JSON: phase RED, "
            "test_files[], test_points[], expected_failures[], run_command.",
            "编写会失败的测试，最多 10 个测试点。提交 JSON：phase 为 RED、test_files[]、t"
            "est_points[]、expected_failures[]、run_command。",
        ),
        after=stages.CONFIRM,
    ),
    Stage(
        key=stages.TEST_FIX,
        role="TddTestAndFix",
        titles=("Make them pass (GREEN)", "通过测试（GREEN）"),
        texts=(
            "Change the code until the tests pass; no test is deleted, disabled or "
            "loosened. Hand in JSON: green {files[], results, diff}, refactor "
            "{improvements[], coverage}, run_command, verdict PASS.",
            "修改业务代码直到测试通过；不得删除、停用或放宽测试。提交 JSON：green {files["
            "]、results、diff}、refactor {improvements[]、coverage}、run_command、verdict"
            " 为 PASS。",
        ),
        after=stages.TEST_DESIGN,
    ),
)
"""The stages, in order."""


FLOW = Flow(name=stages.TEST, role="", stages=STAGES, documents={})
