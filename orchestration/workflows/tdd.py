"""`/test`: RunAndFix, TestPrepare, requirements confirmed by Sir, TestDesign, TestAndFix.

Source: DESIGN section 11, FORMATS ("Test workflow"), source document 004 section 4.
"""

from __future__ import annotations

from orchestration.rules import flow_stages as stages
from orchestration.workflows.starting import Change, Flow, Steps


def build_steps(change: Change) -> Steps:
    """Write the steps of a test run."""
    guide = change.path(stages.TEST_GUIDE_MD)
    return [
        {
            "id": stages.RUN,
            "title": change.said("Make it run", "验证可运行性"),
            "action": change.action(
                "See that the project runs, and repair what keeps it from that, in at most 3 "
                "rounds. Hand in JSON: runnable, commands[], rounds, fixes[].",
                "验证项目可运行，修复阻碍，最多 3 轮。提交 JSON：runnable、commands[]、rounds、"
                "fixes[]。",
            ),
            "role": "TddRunAndFix",
            "delegate": False,
        },
        {
            "id": stages.PREPARE,
            "title": change.said("Prepare the test guide", "准备测试指南"),
            "action": change.action(
                f"Write {guide} in three parts: runnability commands, case management, test "
                "commands.",
                f"编写 {guide}，分三部分：可运行性命令、用例管理、测试命令。",
            ),
            "depends_on": [stages.RUN],
            "role": "TddTestPrepare",
            "scope": [guide],
            "delegate": False,
        },
        {
            "id": stages.CONFIRM,
            "title": change.said("Confirm the requirements with Sir", "与 Sir 确认测试需求"),
            "action": change.action(
                "Put the requirements that will be tested to Sir as questions, and hand in what "
                "he confirmed.",
                "把将要测试的需求作为问题提交给 Sir，然后提交他确认的内容。",
            ),
            "depends_on": [stages.PREPARE],
            "role": "TddTestPrepare",
            "delegate": False,
        },
        {
            "id": stages.TEST_DESIGN,
            "title": change.said("Design the tests (RED)", "设计测试（RED）"),
            "action": change.action(
                "Write tests that fail, at most 10 test points. Hand in JSON: phase RED, "
                "test_files[], test_points[], expected_failures[], run_command.",
                "编写会失败的测试，最多 10 个测试点。提交 JSON：phase 为 RED、test_files[]、"
                "test_points[]、expected_failures[]、run_command。",
            ),
            "depends_on": [stages.CONFIRM],
            "role": "TddTestDesign",
            "delegate": False,
        },
        {
            "id": stages.TEST_FIX,
            "title": change.said("Make them pass (GREEN)", "通过测试（GREEN）"),
            "action": change.action(
                "Change the code until the tests pass; no test is deleted, disabled or loosened. "
                "Hand in JSON: green {files[], results, diff}, refactor {improvements[], "
                "coverage}, run_command, verdict PASS.",
                "修改业务代码直到测试通过；不得删除、停用或放宽测试。提交 JSON：green {files[]、"
                "results、diff}、refactor {improvements[]、coverage}、run_command、"
                "verdict 为 PASS。",
            ),
            "depends_on": [stages.TEST_DESIGN],
            "role": "TddTestAndFix",
            "delegate": False,
        },
    ]


FLOW = Flow(name=stages.TEST, role="", build=build_steps, documents={})
