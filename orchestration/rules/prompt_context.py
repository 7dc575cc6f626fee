"""Layer L2c: the task itself, what was said about it, and what its seat was handed.

The parts stand in the order of their weight: when the budget ends, the last ones are left out.
Source: DESIGN section 12 (L2c), FORMATS ("prompt caps").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestration.rules.prompt_facts import OutputFacts, PromptFacts, Said, TaskFacts
from orchestration.rules.prompt_text import CutWords, fenced, one_line, quoted
from orchestration.states import Seat

BODY, FIELD, COMMENT = 8_000, 4_000, 2_000
"""Characters of the task's text, of any other field, and of one comment."""
MAX_ATTEMPTS, MAX_COMMENTS, MAX_LINES = 10, 30, 40
READS_CONTENT = frozenset({Seat.QA, Seat.FIXER, Seat.CROSS_VERIFIER, Seat.VALIDATOR})
Words = Mapping[str, str]


def task_parts(facts: PromptFacts, words: Words, task_url: str, cut: CutWords) -> list[str]:
    """Write the parts of the task's layer, the weightiest first."""
    writer = _Parts(facts, words, cut)
    parts = [
        writer.head(),
        *writer.said(facts.corrections, "corrections", FIELD),
        *writer.texts(),
        *writer.fields(),
        *writer.said(facts.answers, "answers", FIELD),
        *writer.seat_parts(),
        *writer.said(facts.failures[-MAX_ATTEMPTS:], "failures", FIELD),
        *writer.mail(),
        *writer.outputs(),
        *writer.checks(),
        *writer.said(facts.comments[:MAX_COMMENTS], "comments", COMMENT),
        *writer.children(),
    ]
    return [part for part in parts if part]


class _Parts:
    """Writes the parts of one L2c."""

    def __init__(self, facts: PromptFacts, words: Words, cut: CutWords) -> None:
        self.facts, self.words, self.cut = facts, words, cut

    def head(self) -> str:
        """What it is, and how the method sees it."""
        task, words = self.facts.task, self.words
        unknown = words["unknown"]
        lines = [
            f"## {words['task_line'].format(key=task.key, title=one_line(task.title, 300))}",
            words["facts_line"].format(
                route=task.route or unknown,
                complexity=task.complexity or unknown,
                risk=task.risk_level or unknown,
                phase=task.phase,
                depth=task.depth,
                attempt=task.attempt,
                attempts=task.attempts,
            ),
        ]
        if task.role:
            lines.append(words["role_line"].format(role=one_line(task.role)))
        if task.is_irreversible:
            lines.append(words["irreversible"])
        return "\n".join(lines)

    def texts(self) -> list[str]:
        """The task's text and the specification it starts from."""
        task, words = self.facts.task, self.words
        text = task.description.strip() or task.title
        parts = [
            quoted(text, label=words["description"].format(by=task.by), limit=BODY, cut=self.cut)
        ]
        spec = task.specification
        if spec is not None and spec.text.strip():
            label = words["specification"].format(
                name=one_line(spec.note or task.spec_id), by=spec.by
            )
            parts.append(quoted(spec.text, label=label, limit=BODY, cut=self.cut))
        return parts

    def fields(self) -> list[str]:
        """What plan or creator said beside the text, as fenced lists of theirs."""
        task, words = self.facts.task, self.words
        lists: Sequence[tuple[str, Sequence[str]]] = (
            ("facts", task.facts),
            ("constraints", task.constraints),
            ("scope", task.scope),
            ("expected", task.expected),
            ("verify", task.verify),
            ("run", task.run),
            ("writes", task.writes),
            ("risks", task.risks),
            ("resources", task.resources),
            ("suggestions", task.suggestions),
        )
        return [self._list(words[name], found, task) for name, found in lists if found]

    def _list(self, title: str, found: Sequence[str], task: TaskFacts) -> str:
        lines = [f"- {one_line(one, 400)}" for one in found[:MAX_LINES]]
        text = fenced("\n".join(lines), label=task.by)
        left = len(found) - len(lines)
        return f"{title}\n{text}" + (f"\n{self.cut.of_parts(left)}" if left > 0 else "")

    def said(self, found: Sequence[Said], name: str, limit: int) -> list[str]:
        """Words of others under one heading, each fenced with whose they are."""
        parts = []
        for at, one in enumerate(found):
            shown = quoted(one.text, label=self._label(name, one), limit=limit, cut=self.cut)
            parts.append(f"{self.words[name]}\n{shown}" if at == 0 else shown)
        return parts

    def _label(self, name: str, one: Said) -> str:
        words = self.words
        if name == "corrections":
            return words["correction_by"].format(by=one.by)
        if name == "answers":
            return words["answer"].format(
                verdict=one.kind, by=one.by, question=one_line(one.note, 100)
            )
        if name == "failures":
            return words["failure"].format(attempt=one.note, kind=one.kind)
        return words["comment"].format(kind=one.kind, by=one.by)

    def seat_parts(self) -> list[str]:
        """What only this seat is handed: a plan to audit, defects to mend, findings to answer."""
        facts, words = self.facts, self.words
        parts = []
        if facts.plan is not None:
            label = words["plan"].format(by=facts.plan.by)
            parts.append(quoted(facts.plan.text, label=label, limit=3 * BODY, cut=self.cut))
        if facts.intent is not None:
            label = words["intent"].format(by=facts.intent.by)
            parts.append(quoted(facts.intent.text, label=label, limit=2 * BODY, cut=self.cut))
        if facts.asked:
            parts.append(quoted(facts.asked, label=words["asked"], limit=2 * BODY, cut=self.cut))
        for at, one in enumerate(facts.defects[:MAX_LINES]):
            label = words["defect"].format(
                severity=one.severity, category=one.category, status=one.status, by=one.by
            )
            text = quoted(f"{one.title}\n\n{one.text}", label=label, limit=FIELD, cut=self.cut)
            parts.append(f"{words['defects']}\n{text}" if at == 0 else text)
        return parts

    def outputs(self) -> list[str]:
        """What was handed in so far; whoever judges or mends it sees its content too."""
        parts = [self._output(one) for one in self.facts.outputs]
        return [f"{self.words['outputs']}\n{parts[0]}", *parts[1:]] if parts else []

    def _output(self, one: OutputFacts) -> str:
        words = self.words
        name = one_line(one.path or one.title, 120)
        label = words["output"].format(title=name, version=one.version, type=one.type, by=one.by)
        if one.is_late:
            label += f" · {words['late']}"
        reads = self.facts.seat in READS_CONTENT
        text = "\n\n".join(filter(None, (one.summary, one.content if reads else ""))) or one.title
        lines = [quoted(text, label=label, limit=BODY if reads else FIELD, cut=self.cut)]
        if reads and one.claims:
            claims = words["claims"].format(title=name, by=one.by)
            lines.append(quoted(one.claims, label=claims, limit=FIELD, cut=self.cut))
        if one.marks:
            marks = " · ".join(f"`{one_line(mark)}`" for mark in one.marks)
            lines.append(words["marks"].format(marks=marks))
        return "\n".join(lines)

    def checks(self) -> list[str]:
        """What we found when we looked ourselves, with what was printed where it failed."""
        words = self.words
        parts = []
        for one in self.facts.checks[:MAX_LINES]:
            name = one_line(one.name, 200)
            lines = [words["check"].format(layer=one.layer, name=name, outcome=one.outcome)]
            lines += [f"  - `{one_line(finding, 300)}`" for finding in one.findings[:10]]
            if one.tail.strip() and one.outcome != "passed":
                label = words["check_tail"].format(name=name)
                lines.append(fenced(one.tail[-COMMENT:], label=label))
            parts.append("\n".join(lines))
        return [f"{words['checks']}\n\n{parts[0]}", *parts[1:]] if parts else []

    def children(self) -> list[str]:
        """The steps below, for seats that judge a whole task."""
        found = self.facts.children
        if not found:
            return []
        lines = [f"* {key} `{one_line(title, 100)}`: {status}" for key, title, status in found]
        return ["\n".join([self.words["children"], *lines])]

    def mail(self) -> list[str]:
        """How much mail waits for the reader, and from whom."""
        mailbox, words = self.facts.mailbox, self.words
        if not mailbox.waiting:
            return []
        where = f"{self.facts.base_url}/api/mail/"
        parts = [words["mail"].format(count=mailbox.waiting, where=where)]
        for one in mailbox.newest:
            label = words["mail_item"].format(kind=one.kind, by=one.by)
            parts.append(quoted(one.text, label=label, limit=COMMENT, cut=self.cut))
        return ["\n\n".join(parts)]
