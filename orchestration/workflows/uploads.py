"""Files that Sir hands in on a page: a playbook or a master task list. All of it is taken or none.

The text is hostile until it is read: one document of plain data within limits, and every fault
with its line. What a file is shows in what it holds: `steps` make a playbook.
Source: DESIGN sections 15 and 17; FORMATS ("Master task list").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from django.conf import settings

from orchestration.contracts.plan import MAX_PLAN_BYTES
from orchestration.contracts.yaml_text import YamlText, parse_yaml
from orchestration.errors import Fault, Invalid, TooLarge
from orchestration.models import Task
from orchestration.services.importing import import_master_list
from orchestration.services.work import Actor
from orchestration.workflows.playbook import playbook_of, submit_read_playbook

MAX_UPLOAD_BYTES = MAX_PLAN_BYTES
NAME_CHARACTERS = 100
WRAPPER = "master_task_list"
SHIPPED: Path = settings.BASE_DIR / "examples" / "playbooks"


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What an upload became. Shape: `tasks` in the file's order."""

    is_playbook: bool
    tasks: list[Task]


def submit_upload(*, project_id: int, name: str, data: bytes, actor: Actor) -> Uploaded:
    """Take a file in: its playbook as one task, or the tasks of its list.

    Its commands are never trusted: those outside the allow-list wait for Sir. A playbook that was
    shipped finds the files beside it here; any other has none.
    Errors: TooLarge; YamlInvalid; Invalid listing every fault with its line; Conflict when the
    project takes no new work. Nothing is changed then.
    """
    if len(data) > MAX_UPLOAD_BYTES:
        raise TooLarge(f"the text is larger than {MAX_UPLOAD_BYTES} bytes")
    shown = PurePath(name.replace("\\", "/")).name[:NAME_CHARACTERS] or "upload"
    # JSON may be indented with tabs, which YAML refuses; inside its strings there can be none.
    is_json = shown.lower().endswith(".json")
    source = parse_yaml(
        data.replace(b"\t", b" ") if is_json else data, limit_bytes=MAX_UPLOAD_BYTES
    )
    if isinstance(source.value, Mapping) and _is_playbook(source.value):
        shipped = _shipped(data)
        path = shipped or Path(shown)
        playbook = playbook_of(source, path, has_directory=shipped is not None)
        task = submit_read_playbook(playbook, project_id=project_id, actor=actor)
        return Uploaded(is_playbook=True, tasks=[task])
    return Uploaded(is_playbook=False, tasks=_import(project_id, source, actor))


def _shipped(data: bytes) -> Path | None:
    """The playbook of ours that an upload is, byte for byte: the files beside it are here."""
    paths = sorted(SHIPPED.glob("*.yaml")) if SHIPPED.is_dir() else []
    return next((path for path in paths if path.read_bytes() == data), None)


def _is_playbook(document: Mapping[Any, Any]) -> bool:
    """Whether a file means to be a playbook; a master list may hold a task called `steps`."""
    steps = document.get("steps")
    return isinstance(steps, list) or ("title" in document and "steps" in document)


def _import(project_id: int, source: YamlText, actor: Actor) -> list[Task]:
    document, above = source.value, ""
    if not isinstance(document, Mapping):
        raise Invalid(
            "The file holds neither a playbook nor a master task list.",
            code="upload_unknown",
            errors=source.with_lines([Fault(path="", message="must be an object")]),
        )
    wrapped = document.get(WRAPPER)
    if len(document) == 1 and isinstance(wrapped, Mapping):
        document, above = wrapped, f"{WRAPPER}."
    named = {str(key): value for key, value in document.items()}
    try:
        return import_master_list(project_id=project_id, document=named, actor=actor).tasks
    except Invalid as error:
        placed = [
            Fault(path=f"{above}{one['path']}".rstrip("."), message=one["message"])
            for one in error.errors
        ]
        lined = source.with_lines(placed)
        error.errors = lined
        raise
