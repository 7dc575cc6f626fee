"""Read the Markdown templates of prompts and fill in what is known of one task.

They stand in `orchestration/prompts/<language>/`; each is read once a process.
Source: DESIGN section 12 (L2a), source document 001.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from string import Template

FOLDER = Path(__file__).resolve().parent.parent / "prompts"


@lru_cache(maxsize=128)
def template(language: str, name: str) -> Template:
    """Read one template. Errors: FileNotFoundError for one that is not there."""
    return Template((FOLDER / language / f"{name}.md").read_text(encoding="utf-8"))


def filled(language: str, name: str, **values: object) -> str:
    """Fill in a template. Errors: KeyError for a place that nothing fills."""
    return template(language, name).substitute({key: str(one) for key, one in values.items()})
