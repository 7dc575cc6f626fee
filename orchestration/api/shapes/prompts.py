"""A prompt as the API shows it."""

from __future__ import annotations

from typing import Self

from orchestration.api.shapes.base import Shape
from orchestration.models import Assignment, Task
from orchestration.rules.prompt_layers import Prompt


class LayerShape(Shape):
    """One layer of a prompt. Units: characters. `is_cut`: its text names what is missing."""

    key: str
    title: str
    text: str
    characters: int
    budget: int
    is_cut: bool


class BootstrapShape(Shape):
    """A prompt. `assignment` is the one it was sent and stored for; None when it was only read."""

    task: str
    task_key: str
    role: str
    assignment: str | None
    language: str
    sha256: str
    characters: int
    is_cut: bool
    layers: list[LayerShape]
    text: str

    @classmethod
    def of_prompt(cls, prompt: Prompt, task: Task, *, sent_for: Assignment | None) -> Self:
        """Shape a prompt of a task."""
        layers = [
            LayerShape(
                key=one.key,
                title=one.title,
                text=one.text,
                characters=len(one.text),
                budget=one.budget,
                is_cut=one.is_cut,
            )
            for one in prompt.layers
        ]
        return cls(
            task=str(task.pk),
            task_key=str(task),
            role=prompt.seat.value,
            assignment=str(sent_for.pk) if sent_for is not None else None,
            language=prompt.language.replace("_", "-"),
            sha256=prompt.sha256,
            characters=len(prompt.text),
            is_cut=prompt.is_cut,
            layers=layers,
            text=prompt.text,
        )
