"""What an attacker tried, each as a test: invisible messages, brackets, long bars, file names."""

from __future__ import annotations

from io import StringIO

import pytest

from dashboard.logs import LINE_CHARACTERS, shortened
from dashboard.richtext import MAX_BRACKETS, render_markdown
from orchestration.errors import Invalid
from orchestration.management.cards import decision_card, plain_text
from orchestration.services.intake import submit_message
from orchestration.services.uploads import safe_name
from orchestration.services.work import Actor
from tests.factories import drive, new_project, open_decision_of, step, submit_plan


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["  \u200b ", "\u2028 \u202e", "\x00\t", "\ufeff"])
def test_a_message_of_invisible_signs_is_empty(text: str) -> None:
    project = new_project()
    with pytest.raises(Invalid, match="empty"):
        submit_message(project_id=project.pk, text=text, actor=Actor("human:sir"))


@pytest.mark.django_db
def test_a_card_of_a_red_line_names_its_commands_in_words() -> None:
    project = new_project()
    submit_plan(project, step("1", run=["rm -r olddata"]))
    drive(project)
    lines = list(decision_card(open_decision_of(project), "http://localhost/inbox/1/"))
    assert any("$ rm -r olddata" in line for line in lines)


def test_brackets_beyond_the_limit_are_shown_as_they_are() -> None:
    shown = render_markdown("[" * (MAX_BRACKETS + 1))
    assert shown.startswith("<pre>")
    assert render_markdown("[" * 10 + "**bold**").count("<strong>") == 1


def test_a_bar_of_many_signs_is_cut_and_says_so() -> None:
    line = shortened("*" * (LINE_CHARACTERS + 7))
    assert line.startswith("*" * LINE_CHARACTERS)
    assert "7" in line[LINE_CHARACTERS:]
    assert shortened("short") == "short"


def test_a_long_name_of_wide_letters_fits_a_file_system() -> None:
    name = safe_name("名" * 300 + ".txt")
    assert name.endswith(".txt")
    assert len(name.encode()) <= 120


def test_escapes_never_reach_the_terminal() -> None:
    said = StringIO()
    said.write(plain_text("K-6 \x1b[31mred\x1b]0;x\x07"))
    assert "\x1b" not in said.getvalue()
