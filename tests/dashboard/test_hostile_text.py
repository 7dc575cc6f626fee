"""Agents' text is hostile: escaped or cleaned on every page, none of which carries inline code."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.richtext import language_of, render_markdown, spell_command
from orchestration.models import (
    Assignment,
    Decision,
    Experience,
    LogChunk,
    Output,
    Task,
    ToolCall,
    WikiPage,
    WikiVersion,
)
from tests.dashboard.conftest import Waiting, furnish
from tests.dashboard.test_page_access import READ
from tests.factories import (
    agent_step,
    child,
    claim,
    drive,
    hand_in,
    new_agent,
    new_project,
    set_status,
    submit_plan,
)

ATTACK = (
    '<script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:alert(3)">x</a>'
    '<style>*{display:none}</style><iframe src="//evil.example"></iframe>" onmouseover="alert(4)'
)
MARKDOWN_ATTACK = (
    f"{ATTACK}\n\n[click](javascript:alert(5)) ![pic](https://evil.example/p.png)"
    "\n\n<svg onload=alert(6)>\n\n[ok](https://example.org/)"
)
RIGHT_TO_LEFT = "\u202eevil\u202c ملف.txt"
FORBIDDEN_TAGS = frozenset({"style", "iframe", "object", "embed", "img", "base"})
ADDRESSES = frozenset({"href", "src", "action", "formaction", "xlink:href", "data"})


class FaultFinder(HTMLParser):
    """Reads a page as a browser does and notes what the policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        if tag in FORBIDDEN_TAGS or (tag == "script" and not held.get("src", "").startswith("/")):
            self.faults.append(f"<{tag}>")
        self.faults += [f"{tag} {name}" for name in held if name == "style" or name[:2] == "on"]
        self.faults += [
            f"{tag} {name}={held[name]}"
            for name in ADDRESSES & set(held)
            if held[name].strip().lower().startswith(("javascript:", "data:", "//"))
        ]

    handle_startendtag = handle_starttag


def faults(page: str) -> list[str]:
    """Name what a page must not carry."""
    finder = FaultFinder()
    finder.feed(page)
    return finder.faults


@pytest.fixture
def waiting(waiting: Waiting) -> Waiting:
    """A project that waits, with an agent, a page and an experience."""
    return furnish(waiting)


@pytest.fixture
def attacked(waiting: Waiting) -> Waiting:
    """A waiting project in which every text of an agent is an attack."""
    decision, defect = waiting.decision, waiting.decision.defect
    assert defect is not None
    content = {
        **decision.content,
        "description": MARKDOWN_ATTACK,
        "evidence": {
            "command": ATTACK,
            "output_tail": f"{ATTACK}\n{RIGHT_TO_LEFT}",
            "exit_code": 1,
        },
        "fix": {"description": MARKDOWN_ATTACK, "patch": decision.content["fix"]["patch"]},
        "detail": ATTACK,
    }
    Decision.objects.filter(pk=decision.pk).update(
        content=content, title=ATTACK[:300], question=ATTACK
    )
    defect.title, defect.raised_by = ATTACK[:300], ATTACK[:140]
    defect.rounds = [{"round": 1, "tried": ATTACK, "outcome": "did_not_verify"}]
    defect.save()
    Task.objects.update(title=ATTACK[:300], description=MARKDOWN_ATTACK, status_detail=ATTACK)
    Output.objects.update(summary=MARKDOWN_ATTACK, content=ATTACK, title=ATTACK[:300])
    waiting.step.comments.create(body=MARKDOWN_ATTACK, author=ATTACK[:120])
    LogChunk.objects.create(
        project=waiting.project, task=waiting.step, source=ATTACK[:120], text=ATTACK
    )
    Assignment.objects.update(prompt=ATTACK, error=ATTACK, input={"text": ATTACK})
    ToolCall.objects.update(command=ATTACK, tool=ATTACK[:120])
    WikiPage.objects.update(title=ATTACK[:300], summary=MARKDOWN_ATTACK, body=MARKDOWN_ATTACK)
    WikiVersion.objects.update(title=ATTACK[:300], author=ATTACK[:140])
    Experience.objects.update(title=ATTACK[:300], body=MARKDOWN_ATTACK, author=ATTACK[:140])
    return waiting


def test_no_page_carries_what_an_agent_wrote_as_markup(
    attacked: Waiting, sir_client: Client
) -> None:
    pages = {name: sir_client.get(build(attacked)) for name, build in READ.items()}
    found = {
        name: faults(page.content.decode())
        for name, page in pages.items()
        if page["Content-Type"].startswith("text/html")
    }
    assert not {name: one for name, one in found.items() if one}
    assert len(found) > 30


def test_attack_is_still_readable_as_text(attacked: Waiting, sir_client: Client) -> None:
    page = sir_client.get(f"/inbox/{attacked.decision.pk}/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert 'href="https://example.org/" rel="noopener noreferrer nofollow"' in page


def test_every_page_forbids_inline_code(waiting: Waiting, sir_client: Client) -> None:
    for name, build in READ.items():
        policy = sir_client.get(build(waiting))["Content-Security-Policy"]
        assert "script-src 'self';" in policy, name
        assert "style-src 'self';" in policy, name
        assert "unsafe" not in policy, name
        assert "object-src 'none'" in policy, name


def test_finder_of_faults_finds_them() -> None:
    assert len(faults(ATTACK + '<p style="x" onclick=y>')) == 9


def test_sign_in_page_is_clean_too(client: Client, db: None) -> None:
    page = client.get("/accounts/login/", {"next": ATTACK})
    assert faults(page.content.decode()) == []


def test_huge_text_is_shown_whole_and_does_not_break_the_page(
    sir: User, sir_client: Client
) -> None:
    project, agent = new_project("huge"), new_agent("coder")
    root = submit_plan(project, agent_step("1"))
    drive(project)
    task = child(root, "1")
    claim(task, agent)
    set_status(task, agent, "working")
    hand_in(task, agent, content="word " * 100_000)
    Task.objects.filter(pk=task.pk).update(description="# head\n" + "a" * 400_000)
    answer = sir_client.get(f"/projects/huge/tasks/{task.pk}/")
    assert answer.status_code == 200
    assert b"a" * 400_000 in answer.content


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** `code`", "<p><strong>bold</strong> <code>code</code></p>"),
        ("a <b>tag</b>", "<p>a &lt;b&gt;tag&lt;/b&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](data:text/html,hi)", "<p>[x](data:text/html,hi)</p>"),
        ("", ""),
    ],
)
def test_markdown_is_rendered_clean(text: str, html: str) -> None:
    assert render_markdown(text).strip() == html


def test_deep_nesting_is_rendered_in_time_and_depth() -> None:
    assert render_markdown("> " * 5_000 + "x")
    assert render_markdown("[" * 5_000)
    assert render_markdown("* " * 2_000)


@pytest.mark.parametrize(
    ("text", "language"), [("重构 REFUND", "zh"), ("plain words", "en"), ("1 2 3", ""), ("", "")]
)
def test_language_of_a_text_is_guessed_for_readers(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("git commit -m one\ntwo", "git commit -m one⏎\ntwo"),
        ("echo\n\n\n\nrm -r x", "echo⏎⏎⏎⏎\nrm -r x"),
        ("echo a\r\nb", "echo a⟨U+000D⟩⏎\nb"),
        ("echo ⏎ \u202eb\tc", "echo ⟨U+23CE⟩ ⟨U+202E⟩b⟨U+0009⟩c"),
        ("echo \u2028", "echo ⟨U+2028⟩"),
    ],
)
def test_line_ends_of_a_command_are_seen_and_the_rest_is_spelled(written: str, shown: str) -> None:
    assert spell_command(written) == shown
