"""The files that the shape tests read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT_FOLDERS = ("config", "orchestration", "dashboard")
TOP_LEVEL = frozenset(
    {
        "manage.py", "config", "orchestration", "dashboard", "templates", "static", "tests",
        "requirements.txt", "requirements-dev.txt", "README.md", "CHANGELOG.md", "CONTRIBUTING.md",
        "Makefile", ".ci", "pyproject.toml", "docs", "examples", "locale", ".gitignore",
    }
)  # fmt: skip
Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*folders: str) -> Iterator[Path]:
    """Yield the Python files below the folders, generated migrations left out."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method of a module, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def public_definitions(tree: ast.Module) -> Iterator[Function | ast.ClassDef]:
    """Yield the public functions and classes of a module and the public methods of its classes."""
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, Function) and not inner.name.startswith("_"):
                        yield inner


def named(path: Path, line: int | None = None) -> str:
    """Return a file and line the way an editor opens them."""
    name = str(path.relative_to(ROOT))
    return name if line is None else f"{name}:{line}"
