"""One task that has everything a prompt tells, in either language, with ids that do not move."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import time_machine

from orchestration.contracts.results import CommentInput
from orchestration.models import (
    Artifact,
    Assignment,
    Comment,
    Defect,
    Experience,
    Output,
    Plan,
    Project,
    Task,
    Verification,
)
from orchestration.services.knowledge import PageText, write_experience, write_page
from orchestration.services.prompts import build_prompt
from orchestration.services.tasks import add_task_comment
from orchestration.services.work import Actor
from orchestration.states import CommentType, Seat
from tests.factories import (
    agent_step,
    child,
    claim,
    confirm_intent,
    drive,
    execute,
    fresh,
    new_agent,
    new_project,
    submit_plan,
)

SIR = Actor("human:sir")
BASE_URL = "http://countersign.test"
MOMENT = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
TEXTS: dict[str, dict[str, str]] = {
    "en": {
        "background": "A shop that sells tea. Payments run through one provider.",
        "summary": "Move the payments to the new provider",
        "first": "Read the provider's interface and list the calls that we need",
        "second": "Write the client for the new payment provider with retries",
        "handoff": "Chose the batch call: one request a night. Timeouts are 30 s. Watch the keys "
        "of the sandbox, they end on Friday.",
        "output": "Seven calls are needed; two of them have no idempotency key.",
        "observation": "The sandbox answers 200 with an error in the body.",
        "experience": "Retries of payment calls need an idempotency key, or the client pays twice.",
        "page": "Payment calls go through one client with retries and a timeout of 30 s.",
        "suggestion": "Name the timeout of each call.",
        "question": "Are refunds part of it?",
        "cause": "The client gave up after the first timeout.",
        "defect": "A refund is sent twice when the first answer is lost",
    },
    "zh-hans": {
        "background": "一家卖茶的店，支付走同一家服务商。",
        "summary": "把支付迁到新的服务商",
        "first": "读服务商的接口文档，列出我们需要的调用",
        "second": "为新的支付服务商编写带重试的客户端",
        "handoff": "选了批量接口：每晚一次请求。超时 30 秒。注意沙箱密钥周五到期。",
        "output": "需要七个调用，其中两个没有幂等键。",
        "observation": "沙箱出错时也答 200，错误在正文里。",
        "experience": "支付调用的重试必须带幂等键，否则客户端会付两次。",
        "page": "支付调用都走同一个带重试的客户端，超时 30 秒。",
        "suggestion": "写明每个调用的超时。",
        "question": "退款也算在内吗？",
        "cause": "客户端在第一次超时之后就放弃了。",
        "defect": "第一个答复丢失时退款会发两次",
    },
}


class Sample:
    """A project with a plan of two steps: the first done, the second what the prompts are about."""

    def __init__(self, language: str) -> None:
        texts = TEXTS[language]
        self.texts = texts
        self.project = self._project(language)
        self.agent = new_agent("builder", project=self.project)
        steps = [
            agent_step("1", action=texts["first"]),
            agent_step(
                "2",
                after=["1"],
                action=texts["second"],
                expected_artifacts=[{"path": "payments/client.py", "type": "code"}],
                verify=["python -m pytest tests/payments"],
                writes=["payments"],
                risks=["double payment"],
            ),
        ]
        self.root = submit_plan(self.project, *steps, text=texts["summary"])
        drive(self.project)
        self._do_first()
        self.task = child(self.root, "2")
        self._knowledge()

    def _project(self, language: str) -> Project:
        project = new_project("demo", policy={"commands": {"allow": [["python", "-m", "pytest"]]}})
        project.name, project.language = "Demo", language
        project.description = self.texts["background"]
        project.workspace = "/srv/demo"
        project.save()
        return project

    def _do_first(self) -> None:
        first, texts = child(self.root, "1"), self.texts
        execute(first, self.agent, texts["output"])
        Output.objects.filter(task=first).update(summary=texts["output"])
        comments = Comment.objects.filter(task=first, comment_type=CommentType.HANDOFF.value)
        comments.update(body=texts["handoff"])

    def _knowledge(self) -> None:
        texts, writer = self.texts, Actor("agent:builder")
        write_experience(
            project=self.project, title=texts["experience"], body=texts["experience"], actor=writer,
            agent=self.agent,
        )  # fmt: skip
        text = PageText(texts["page"], title=texts["page"], summary=texts["page"])
        write_page(project=self.project, name="payments", text=text, actor=SIR)
        comment = CommentInput(comment_type=CommentType.OBSERVATION, body=texts["observation"])
        add_task_comment(task_id=self.task.pk, document=comment, agent=None, actor=SIR)

    def prompt(self, seat: Seat) -> str:
        """The prompt of a seat for the task; root seats get the root's."""
        task = self.root if seat in (Seat.PLANNER, Seat.AUDITOR, Seat.VALIDATOR) else self.task
        assignment = self._assignment(task, seat)
        made = build_prompt(
            task=task, seat=seat, assignment=assignment, base_url=BASE_URL, agent=self.agent
        )
        return self._with_fixed_ids(made.text, assignment)

    def intent_prompt(self) -> str:
        """The prompt of an auditor that is asked what the executor of the task understood."""
        Task.objects.filter(pk=self.task.pk).update(complexity="medium")
        worker, task = new_agent("worker", project=self.project), fresh(self.task)
        claim(task, worker)
        mail = confirm_intent(
            task, worker, scope=["payments"], questions=[self.texts["question"]],
            message_id="intent-2", assumptions=[self.texts["page"]],
        )  # fmt: skip
        asked = {"stage": "handshake", "handshake": str(mail.handshake.pk)}
        assignment = Assignment.objects.create(
            project=self.project, task=task, seat=Seat.AUDITOR.value, backend="external",
            status="cancelled", input=asked,
        )  # fmt: skip
        made = build_prompt(
            task=fresh(task), seat=Seat.AUDITOR, assignment=assignment, base_url=BASE_URL,
            agent=self.agent,
        )  # fmt: skip
        return self._with_fixed_ids(made.text, assignment)

    def _assignment(self, task: Task, seat: Seat) -> Assignment:
        asked: dict[str, Any] = {}
        plan: Plan | None = None
        if seat is Seat.AUDITOR:
            plan = task.plans.get()
        elif seat is Seat.PLANNER:
            asked = {"findings": [self.texts["suggestion"]], "guidance": ""}
        elif seat is Seat.EXECUTOR:
            self._second_attempt(task)
        elif seat in (Seat.QA, Seat.FIXER, Seat.CROSS_VERIFIER):
            self._handed_in(task, with_defect=seat is Seat.FIXER)
            asked = {"mode": "fix", "fix_round": 1} if seat is Seat.FIXER else {}
        return Assignment.objects.create(
            project=self.project, task=task, seat=seat.value, backend="external", plan=plan,
            status="cancelled", input=asked,
        )  # fmt: skip

    def _second_attempt(self, task: Task) -> None:
        task.attempt, task.complexity, task.risk_level = 2, "medium", "medium"
        task.failure_context = [
            {"attempt": 1, "class": "check_failed", "root_cause": self.texts["cause"]}
        ]
        task.save()

    def _handed_in(self, task: Task, *, with_defect: bool) -> None:
        Output.objects.create(
            task=task, title="client", type="code", path="payments/client.py",
            summary=self.texts["second"], content="def pay():\n    ...\n",
            assertions=[{"claim": "all tests pass", "confidence": "verified", "evidence": "12"}],
            marks=[{"kind": "unverified", "text": "[未验证]"}],
        )  # fmt: skip
        Verification.objects.create(
            task=task, layer="L3", name="python -m pytest tests/payments", outcome="failed",
            output_tail="E   assert 2 == 1\n11 passed, 1 failed", exit_code=1,
            findings=["exit code 1, wanted 0"],
        )  # fmt: skip
        if with_defect:
            Defect.objects.create(
                task=task, severity="high", title=self.texts["defect"], status="fixing",
                description=self.texts["defect"], evidence={"exit_code": 1}, raised_by="rules",
            )  # fmt: skip

    def _with_fixed_ids(self, text: str, assignment: Assignment) -> str:
        """Put the sample's numbers in the place of ids, which a sequence of the database gives."""
        text = text.replace(f"/api/assignments/{assignment.pk}", "/api/assignments/41")
        for artifact in Artifact.objects.filter(project=self.project):
            text = text.replace(f"/api/artifacts/{artifact.pk}/", "/api/artifacts/7/")
        experience = Experience.objects.get(project=self.project)
        for before, after in (
            (f"experience {experience.pk} ", "experience 5 "),
            (f"经验 {experience.pk} ", "经验 5 "),
            (f"experiences/{experience.pk}", "experiences/5"),
        ):
            text = text.replace(before, after)
        return text


def golden_prompt(language: str, seat: Seat) -> str:
    """The prompt that the golden file of a seat holds. Needs an empty database."""
    with time_machine.travel(MOMENT, tick=False):
        return Sample(language).prompt(seat)


def golden_intent(language: str) -> str:
    """The prompt about an understanding. Needs an empty database."""
    with time_machine.travel(MOMENT, tick=False):
        return Sample(language).intent_prompt()


def golden_name(language: str, role: str) -> str:
    """The file's name."""
    return f"{role}.{language}.md"
