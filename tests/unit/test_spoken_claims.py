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
    ],
)
def test_what_is_denied_planned_or_conditional_is_no_claim(text: str) -> None:
    assert said(text) == []


def test_toolchain_that_is_named_is_kept() -> None:
    named = [one.toolchain for one in find_spoken_claims("go build 编译通过; pytest: 7 passed")]
    assert named == ["go", "python"]


@pytest.mark.parametrize(
    "piece", ["a/", "创建 ", "a.", "1", "12 passed 测试", "created a.b ", "测试"]
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
