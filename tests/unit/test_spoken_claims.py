"""What an agent says it did, in two languages, and what it does not say."""

from __future__ import annotations

import time

import pytest

from orchestration.rules.run_counts import TestCounts, ran_nothing, read_counts
from orchestration.rules.spoken_claims import find_spoken_claims

Said = list[tuple[str, str, int | None, int | None]]


def said(text: str) -> Said:
    return [(one.kind, one.path, one.passed, one.failed) for one in find_spoken_claims(text)]


def made(path: str) -> tuple[str, str, None, None]:
    return ("file", path, None, None)


def counted(passed: int) -> tuple[str, str, int, None]:
    return ("test", "", passed, None)


BUILD = ("build", "", None, None)
TEST = ("test", "", None, None)


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("hello.go 已创建，编译通过，可以直接 go run。", [made("hello.go"), BUILD]),
        ("写好了，编译通过，在 /tmp/server/main.go", [BUILD]),
        ("创建了 src/x.py，测试通过", [made("src/x.py"), TEST]),
        ("构建成功。所有测试都通过了", [BUILD, TEST]),
        ("created a/b.py; it builds and all tests pass", [made("a/b.py"), BUILD, TEST]),
        ("I wrote report.md and data.csv.", [made("report.md"), made("data.csv")]),
        ("12 passed", [("test", "", 12, None)]),
        ("12 passed, 0 failed", [("test", "", 12, 0)]),
        ("3 failed, 9 passed", [("test", "", 9, 3)]),
        ("all 12 tests pass", [("test", "", 12, None)]),
        ("12 个测试全部通过", [("test", "", 12, None)]),
        ("12/14 通过", [("test", "", 12, 2)]),
        ("The build passes. The test suite is green", [BUILD, TEST]),
        ("Refactored the module to use a cache and all 12 tests pass.", [counted(12)]),
        ("Added a test to cover X and all 12 tests pass", [counted(12)]),
        ("After the fix all tests pass", [TEST]),
        ("Before the fix 2 tests broke and now all tests pass", [TEST]),
        ("It no longer needs Redis and all tests pass", [TEST]),
        ("It does not need Redis any more and it builds", [BUILD]),
        ("There are no errors and all tests pass", [TEST]),
        ("It never blocks and the build passes", [BUILD]),
        ("Please note that all tests pass", [TEST]),
        ("Switched to LRU so all tests pass now", [TEST]),
        ("pytest passes", [TEST]),
        ("go test passes and go build passes", [BUILD, TEST]),
        ("npm run test is green", [TEST]),
        ("not only the unit tests pass", [TEST]),
        ("12 tests, 0 failures", [("test", "", 12, 0)]),
        ("Ran 12 tests, 2 failed", [("test", "", 10, 2)]),
        ("14 tests run, no failures", [("test", "", 14, 0)]),
        ("I had to be careful, all tests pass", [TEST]),
        ("created a.py and b.py to make it work", [made("a.py"), made("b.py")]),
        ("不再依赖 X 而且编译通过", [BUILD]),
        ("不再依赖 X 编译通过", [BUILD]),
        ("编译没有问题", [BUILD]),
        ("编译没有任何错误", [BUILD]),
        ("编译没问题", [BUILD]),
        ("所有用例通过", [TEST]),
        ("12 个用例全部通过", [counted(12)]),
        ("测试没有问题", [TEST]),
        ("go test 通过", [TEST]),
        ("pytest 全部通过", [TEST]),
        ("当前所有测试通过", [TEST]),
        ("修好了请求处理并且测试通过", [TEST]),
        ("按计划改完而且测试通过", [TEST]),
        ("没有改接口同时测试通过", [TEST]),
        ("不仅编译通过", [BUILD]),
        ("创建了 报告.md", [made("报告.md")]),
        ("创建了报告.md", [made("报告.md")]),
        ("新建 docs/设计说明.md", [made("docs/设计说明.md")]),
        ("生成了 `数据/结果.csv` 和 main.go", [made("数据/结果.csv"), made("main.go")]),
        ("created übersicht.md", [made("übersicht.md")]),
        ("在目录里写好了main.go", [made("main.go")]),
    ],
)
def test_what_is_said_as_done_is_found(text: str, claims: Said) -> None:
    assert said(text) == claims


@pytest.mark.parametrize(
    "text",
    [
        "",
        "测试未通过",
        "编译不通过",
        "没有创建 x.py",
        "将创建 x.py",
        "如果测试通过，则合并，编译通过也行",
        "测试通过率 90%",
        "测试通过后再发布",
        "请确保测试通过",
        "tests do not pass",
        "the tests don't pass",
        "We will create x.py",
        "If the build passes, all tests pass",
        "make sure that tests pass",
        "created a Node.js server",
        "created version 1.2 of example.com",
        "建议把查询改成批量接口，预计能降低 60% 的延迟。",
        "代码写好了，但编译有个小问题，我来修一下。",
        "we need all tests to pass",
        "We need to refactor it and make all tests pass",
        "tests do not pass yet",
        "before merging all tests must pass",
        "Before merging all tests pass",
        "after all 12 tests pass we merge",
        "after the tests pass it is merged",
        "not all tests pass",
        "we must clean up and all tests pass",
        "it should build and all tests pass",
        "Please fix it and see that all tests pass",
        "I changed it to make all tests pass",
        "We hope that pytest passes",
        "pytest does not pass",
        "it never builds",
        "if 12 tests, 0 failures",
        "we need 12 tests, 0 failures",
        "x.md needs to be created",
        "unable to say that all tests pass",
        "请让测试通过",
        "请让测试通过而且编译通过",
        "需要所有用例通过",
        "go test 未通过",
        "go test 通过后合并",
        "用例没有通过",
        "用例通过率 90%",
        "测试不再通过",
        "编译不再成功",
        "计划创建 报告.md",
        "还没有创建 报告.md",
        "希望编译没有问题",
        "待测试通过",
        "如果编译没有问题，就合并",
    ],
)
def test_what_is_denied_planned_or_conditional_is_no_claim(text: str) -> None:
    assert said(text) == []


def test_toolchain_that_is_named_is_kept() -> None:
    named = [one.toolchain for one in find_spoken_claims("go build 编译通过; pytest: 7 passed")]
    assert named == ["go", "python"]


@pytest.mark.parametrize(
    "piece",
    [
        "a/",
        "创建 ",
        "a.",
        "1",
        "12 passed 测试",
        "created a.b ",
        "测试",
        "1 tests, ",
        "not and ",
        "创建了 报",
        "tests pass ",
        "编译通过而且",
        "go test ",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    began = time.process_time()
    find_spoken_claims(text)
    read_counts(text[-8000:])
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        ("....\n12 passed in 0.31s\n", (12, 0)),
        ("=== 1 failed, 11 passed, 2 warnings in 3.2s ===", (11, 1)),
        ("Ran 5 tests in 0.001s\n\nOK\n", (5, 0)),
        ("Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=2)\n", (2, 3)),
        ("--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n", (1, 1)),
        ("# pass 4\n# fail 1\n", (4, 1)),
        ("Tests:       1 failed, 2 passed, 3 total\n", (2, 1)),
        ("  7 passing (10ms)\n", (7, 0)),
        (" 3 pass\n 0 fail\n", (3, 0)),
        ("test result: ok. 6 passed; 0 failed; 0 ignored\n", (6, 0)),
    ],
)
def test_counts_of_each_tool_are_read(output: str, counts: tuple[int, int]) -> None:
    assert read_counts(output) == TestCounts(*counts)


def test_no_summary_is_no_count() -> None:
    assert read_counts("everything is fine, 12 of 12") is None


def test_counts_of_single_tests_are_none_where_the_output_is_cut() -> None:
    whole = "--- PASS: TestA (0.00s)\n" * 20
    assert read_counts(whole) == TestCounts(20, 0)
    assert read_counts((whole * 40)[-8192:]) is None


@pytest.mark.parametrize(
    ("command", "output", "code", "is_nothing"),
    [
        ("go test -v ./...", "?   \tapp\t[no test files]\n", 0, True),
        ("go test -v ./...", "ok  \tapp\t0.1s\n", 0, True),
        ("go test -v ./...", "--- PASS: TestA (0.00s)\n", 0, False),
        ("bun test", "error: 0 test files matching **.test.js", 1, True),
        ("node --test", "# pass 0\n# fail 0\n", 0, True),
        ("python3 -m pytest -q", "no tests ran in 0.01s\n", 5, True),
        ("make test", "", 0, False),
        ("go test -v ./...", "panic: no\n", 2, False),
        ("python3 -m pytest -q", "noise\n" * 1_400, 0, True),
        ("python3 -m unittest", "noise\n" * 1_400, 0, True),
        ("node --test", "noise\n" * 1_400, 0, True),
        ("bun test", "noise\n" * 1_400, 0, True),
        ("go test -v ./...", "noise\n" * 1_400, 0, False),
        ("python3 -m pytest -q", "noise\n" * 1_400 + "3 passed in 0.01s\n", 0, False),
    ],
)
def test_run_without_a_test_is_told_from_one_that_passed(
    command: str, output: str, code: int, *, is_nothing: bool
) -> None:
    assert ran_nothing(command.split(), output, code) == is_nothing
