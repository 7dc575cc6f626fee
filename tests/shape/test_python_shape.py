"""Files and functions stay small, have a docstring, and live in a file with a meaning."""

import ast
import re

from tests.shape.sources import (
    PRODUCT_FOLDERS,
    Function,
    functions,
    named,
    public_definitions,
    python_files,
)

FILE_LINES = 400
FUNCTION_LINES = 40
MEANINGLESS = re.compile(r"(^|_)(utils?|helpers?|misc|common)(_|$)")
# They wait for other processes, which offer nothing to wait on.
MAY_SLEEP = frozenset({"tests/services_up.py", "tests/deployment/processes.py"})


def test_files_are_shorter_than_400_lines() -> None:
    long = [
        f"{named(path)}: {count}"
        for path in python_files(*PRODUCT_FOLDERS, "tests", "examples")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) >= FILE_LINES
    ]
    assert not long, "\n".join(long)


def statement_lines(node: Function) -> int:
    """Count from the first statement to the last; the signature and the docstring are free."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_functions_are_shorter_than_40_lines() -> None:
    long = [
        f"{named(path, node.lineno)} {node.name}: {count}"
        for path in python_files(*PRODUCT_FOLDERS, "tests")
        for node in functions(ast.parse(path.read_text(encoding="utf-8")))
        if (count := statement_lines(node)) >= FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def test_modules_and_public_definitions_say_what_they_do() -> None:
    silent = []
    for path in python_files(*PRODUCT_FOLDERS):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if tree.body and not ast.get_docstring(tree):
            silent.append(named(path))
        silent += [
            f"{named(path, node.lineno)} {node.name}"
            for node in public_definitions(tree)
            if not ast.get_docstring(node)
        ]
    assert not silent, "\n".join(silent)


def test_no_file_is_named_after_nothing() -> None:
    assert not [
        named(path)
        for path in python_files(*PRODUCT_FOLDERS, "tests")
        if MEANINGLESS.search(path.stem)
    ]


def is_sleep(node: ast.AST) -> bool:
    """Return whether the node waits for time to pass; `sleep(0)` only lets others run."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    lets_run = [isinstance(part, ast.Constant) and part.value == 0 for part in node.args]
    return name == "sleep" and lets_run != [True]


def test_tests_wait_for_events_and_never_sleep() -> None:
    sleeping = [
        named(path, getattr(node, "lineno", None))
        for path in python_files("tests")
        if named(path) not in MAY_SLEEP and "bench" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if is_sleep(node)
    ]
    assert not sleeping, "\n".join(sleeping)
