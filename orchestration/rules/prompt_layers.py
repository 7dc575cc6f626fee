"""Write a prompt, layer by layer: L2a role … L3b wiki, each within its budget of characters.

L1 belongs to the agent. Which layers a seat gets: guardrails are the executor's, the review
protocol is for everybody but the scorer, whose whole prompt stays within 400 tokens.
Source: DESIGN sections 5 (scorer), 6 (complexity) and 12; FORMATS ("Defaults seen in practice").
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from orchestration.rules.profiles import PROFILES
from orchestration.rules.prompt_context import task_parts
from orchestration.rules.prompt_facts import Knowledge, Predecessor, PromptFacts
from orchestration.rules.prompt_templates import filled
from orchestration.rules.prompt_text import (
    CutWords,
    Layer,
    compose,
    estimated_tokens,
    fenced,
    one_line,
    quoted,
)
from orchestration.rules.prompt_words import WORDS, prompt_language
from orchestration.rules.scoring import COLLABORATION
from orchestration.states import Complexity, Seat

BUDGETS: Mapping[str, int] = MappingProxyType(
    {
        "L2a": 12_000,
        "L2b": 6_000,
        "L2c": 40_000,
        "L2d": 24_000,
        "L2e": 12_000,
        "L2f": 4_000,
        "L3a": 6_000,
        "L3b": 6_000,
    }
)
"""Characters a layer may have. L2a and L2f are ours and always fit; a test holds them to it."""
PREDECESSOR_LEAST, PREDECESSOR_MOST = 300, 4_000
KNOWLEDGE_CHARACTERS = 1_000
SCORER_TOKENS = 400
"""Tokens of a scorer's prompt: with its answer it stays within 500."""
ORDER = ("L2a", "L2b", "L2c", "L2d", "L2e", "L2f", "L3a", "L3b")
INTENT_ROLE = "auditor_intent"
"""The template of an auditor that is asked whether an executor understood its task."""
CHECKLISTS = frozenset({"code", "document", "data", "config", "other"})


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it is sent. Shape: `layers` in order, empty ones left out."""

    seat: Seat
    language: str
    layers: Sequence[Layer]
    text: str

    @property
    def sha256(self) -> str:
        """The digest of the text, as the audit trail names it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def is_cut(self) -> bool:
        """Whether something did not fit and the text says so."""
        return any(layer.is_cut for layer in self.layers)


def write_prompt(facts: PromptFacts) -> Prompt:
    """Write the prompt of a seat for a task."""
    language = prompt_language(facts.project.language)
    if facts.seat is Seat.SCORER:
        return _scorer_prompt(facts, language)
    writer = _Writer(facts, language)
    layers = [layer for key in ORDER if (layer := writer.layer(key)) is not None]
    words = WORDS[language]
    blocks = [words["intro"], *(_titled(layer) for layer in layers)]
    return Prompt(facts.seat, language, layers, "\n\n".join(blocks) + "\n")


def _titled(layer: Layer) -> str:
    # The role's template begins with its own heading.
    return layer.text if layer.key == "L2a" else f"# {layer.title} ({layer.key})\n\n{layer.text}"


def _scorer_prompt(facts: PromptFacts, language: str) -> Prompt:
    """Write the scorer's prompt: role and text, cut to fit its few tokens."""
    words = WORDS[language]
    writer = _Writer(facts, language)
    role = writer.role()
    text = f"{facts.task.title}\n{facts.task.description}".strip()
    if facts.task.description.startswith(facts.task.title.rstrip("…")):
        text = facts.task.description
    cut = CutWords(words["cut_text"], words["cut_parts"], writer.task_url)
    label = words["description"].format(by=facts.task.by)
    shown = len(text)
    block = quoted(text, label=label, limit=shown, cut=cut)
    while estimated_tokens(role + block) > SCORER_TOKENS and shown > 40:
        shown = shown * 9 // 10
        block = quoted(text, label=label, limit=shown, cut=cut)
    layers = [
        Layer("L2a", words["title_L2a"], role, BUDGETS["L2a"]),
        Layer("L2c", words["title_L2c"], block, BUDGETS["L2c"], is_cut=shown < len(text)),
    ]
    return Prompt(Seat.SCORER, language, layers, f"{role}\n\n{block}\n")


class _Writer:
    """Writes the layers of one prompt."""

    def __init__(self, facts: PromptFacts, language: str) -> None:
        self.facts, self.language, self.words = facts, language, WORDS[language]
        self.cuts: list[str] = []
        self.project_url = f"{facts.base_url}/api/projects/{facts.project.slug}"
        self.task_url = f"{self.project_url}/tasks/{facts.task.key}"
        self.makers: Mapping[str, Callable[[], list[str]]] = {
            "L2a": lambda: [self.role()],
            "L2b": self.project,
            "L2c": lambda: task_parts(facts, self.words, self.task_url, self.cut()),
            "L2d": self.predecessors,
            "L2e": self.guardrails,
            "L2f": self.review_protocol,
            "L3a": lambda: self.knowledge(facts.experiences, "experience"),
            "L3b": lambda: self.knowledge(facts.pages, "page"),
        }

    def cut(self, where: str = "") -> CutWords:
        """How cuts are said, and where all of it is."""
        words = self.words
        return CutWords(
            words["cut_text"],
            words["cut_parts"],
            where or f"{self.task_url}?expand=all",
            self.cuts,
        )

    def layer(self, key: str) -> Layer | None:
        """Write one layer within its budget; None where the seat has none or it is empty."""
        places = {"L2b": f"{self.project_url}/tasks", "L2e": f"{self.project_url}/"}
        places |= {"L3a": f"{self.project_url}/experiences", "L3b": f"{self.project_url}/wiki"}
        self.cuts = []
        return compose(
            key,
            self.words[f"title_{key}"],
            self.makers[key](),
            budget=BUDGETS[key],
            cut=self.cut(places.get(key, "")),
        )

    def role(self) -> str:
        """L2a: the template of the seat, with this task's addresses."""
        facts, task, project = self.facts, self.facts.task, self.facts.project
        name = facts.assignment_id or self.words["assignment_unknown"]
        judge = self._profile_text(task.judge) if facts.seat is Seat.QA else ""
        said = filled(
            self.language,
            INTENT_ROLE if facts.intent is not None else facts.seat.value,
            base=facts.base_url,
            slug=project.slug,
            project=self.project_url,
            task=self.task_url,
            assignment=f"{facts.base_url}/api/assignments/{name}",
            key=task.key,
            depth=task.depth,
            lease_minutes=project.lease_minutes,
            fix_rounds=project.fix_rounds,
            profile=self._profile(),
            handshake=self._handshake(),
        ).strip("\n")
        return f"{said}\n{judge}".rstrip("\n")

    def _profile(self) -> str:
        """The rules of the task's depth, and what its role is held to."""
        task, limit = self.facts.task, self.facts.project.max_depth
        rule = "depth_may" if task.depth < limit else "depth_may_not"
        text = ""
        if self.facts.seat is Seat.EXECUTOR:
            said = self.words[rule].format(limit=limit)
            text = filled(self.language, "depth", depth=task.depth, depth_rule=said)
        return text + self._profile_text(task.role)

    def _profile_text(self, name: str) -> str:
        """What one of the twelve profiles is told; nothing for any other name."""
        profile = PROFILES.get(name)
        if profile is None:
            return ""
        return filled(self.language, profile.prompt, task=self.task_url).rstrip("\n") + "\n"

    def _handshake(self) -> str:
        """Whether the reader's understanding is asked for before it starts."""
        level = Complexity(self.facts.task.complexity or Complexity.LOW)
        if not COLLABORATION[level].handshake:
            return filled(self.language, "handshake_optional", base=self.facts.base_url)
        return filled(
            self.language,
            "handshake_required",
            complexity=self.words[f"complexity_{level.value}"],
            base=self.facts.base_url,
            slug=self.facts.project.slug,
            key=self.facts.task.key,
        )

    @property
    def branch(self) -> str:
        """A name for the work of one attempt that no other attempt or task is given."""
        return f"{self.facts.task.key}-a{self.facts.task.attempt}"

    def project(self) -> list[str]:
        """L2b: what the project is, where it works, and where its list stands."""
        project, words = self.facts.project, self.words
        head = [words["project_line"].format(slug=project.slug, name=one_line(project.name))]
        if project.workspace:
            head.append(words["workspace"].format(path=one_line(project.workspace, 400)))
        if project.workspace and self.facts.seat in (Seat.EXECUTOR, Seat.FIXER):
            head.append(words["branch"].format(name=self.branch))
        commands = " · ".join(f"`{one_line(one)}`" for one in project.allowed)
        head.append(
            words["allowed"].format(commands=commands) if commands else words["allowed_none"]
        )
        parts = ["\n".join(head)]
        if project.description.strip():
            parts.append(
                quoted(
                    project.description,
                    label=words["project_text"],
                    limit=3_000,
                    cut=self.cut(f"{self.project_url}/"),
                )
            )
        if project.roots:
            lines = [
                f"* {key} `{one_line(title, 100)}`: {state}" for key, title, state in project.roots
            ]
            parts.append("\n".join([words["roots"].format(count=project.roots_total), *lines]))
            if project.roots_total > len(lines):
                left = project.roots_total - len(lines)
                parts.append(self.cut(f"{self.project_url}/tasks").of_parts(left))
        return parts

    def predecessors(self) -> list[str]:
        """L2d: what each task before this one handed in and handed off, in equal shares."""
        found = self.facts.predecessors
        if not found:
            return [self.words["predecessor_none"]]
        share = min(PREDECESSOR_MOST, max(PREDECESSOR_LEAST, BUDGETS["L2d"] // len(found) - 300))
        return [self._predecessor(one, share) for one in found]

    def _predecessor(self, one: Predecessor, share: int) -> str:
        words = self.words
        cut = self.cut(f"{self.project_url}/tasks/{one.key}?expand=all")
        head = words["predecessor"].format(
            key=one.key, title=one_line(one.title), status=one.status
        )
        lines = [head]
        left = share
        if one.handoff is not None:
            label = words["handoff"].format(by=one.handoff.by)
            lines.append(quoted(one.handoff.text, label=label, limit=left, cut=cut))
            left = max(80, left - len(one.handoff.text))
        else:
            lines.append(words["handoff_none"])
        for said in one.summaries:
            if left <= 80 and len(lines) > 2:
                lines.append(cut.of_parts(len(one.summaries) - len(lines) + 2))
                break
            label = words["summary"].format(title=one_line(said.note, 100), by=said.by)
            lines.append(quoted(said.text, label=label, limit=left, cut=cut))
            left = max(80, left - len(said.text))
        if one.artifacts:
            base = self.facts.base_url
            names = ", ".join(
                f"`{one_line(name, 120)}` {base}{path}" for name, path in one.artifacts
            )
            lines.append(words["artifacts"].format(names=names))
        return "\n".join(lines)

    def guardrails(self) -> list[str]:
        """L2e: the project's rules, for who executes."""
        if self.facts.seat is not Seat.EXECUTOR:
            return []
        rules = self.facts.project.guardrails
        return ["\n".join(f"* {one_line(rule, 500)}" for rule in rules)] if rules else []

    def review_protocol(self) -> list[str]:
        """L2f: the layers this task goes through, and what its kind of work is checked for."""
        task = self.facts.task
        kinds = [kind for kind in task.expected_kinds if kind in CHECKLISTS] or ["other"]
        said = filled(self.language, "review_protocol", layers=" · ".join(task.layers))
        lists = [filled(self.language, f"checklist_{kind}") for kind in dict.fromkeys(kinds)]
        return [said, *lists]

    def knowledge(self, found: Sequence[Knowledge], kind: str) -> list[str]:
        """L3a and L3b: what resembles this task, with who wrote it and whether anybody looked."""
        if not found:
            return []
        words = self.words
        parts = [words["knowledge_note"]]
        for one in found:
            label = words[kind].format(id=one.id, title=one_line(one.title, 100), by=one.by)
            if one.is_unreviewed:
                label += f" · {words['unreviewed']}"
            where = f"{self.project_url}/{one.address}"
            shown = fenced(one.text[:KNOWLEDGE_CHARACTERS], label=label)
            if len(one.text) > KNOWLEDGE_CHARACTERS:
                note = self.cut(where).of_text(KNOWLEDGE_CHARACTERS, len(one.text))
                parts.append(f"{shown}\n{note}")
            else:
                parts.append(shown)
        return parts
