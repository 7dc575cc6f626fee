"""The policy page: every setting, faults beside fields, tried on messages, saved in two steps."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from dashboard.policy_fields import kind_of
from orchestration.models import AuditEvent, Project
from orchestration.policy import DEFAULT_POLICY, Policy
from orchestration.selectors.policy import flat
from orchestration.services.intake import submit_message
from orchestration.services.projects import ProjectChange, update_project
from orchestration.services.work import SYSTEM
from tests.factories import new_project

CONTROL = re.compile(
    r'<(?:input|select|textarea)[^>]*? name="(?P<name>[a-z0-9_.]+)"', re.IGNORECASE
)


@pytest.fixture
def project(db: None) -> Project:
    return new_project("rules")


def page_of(client: Client, project: Project) -> str:
    answer = client.get(f"/projects/{project.slug}/policy/")
    assert answer.status_code == 200
    return answer.content.decode()


def form_of(page: str, section: str) -> dict[str, list[str]]:
    """Read one form of the page as a browser sends it, untouched."""
    body = page.partition(f'id="section-{section}"')[2].partition("</form>")[0]
    sent: dict[str, list[str]] = {}
    for tag in re.finditer(r"<input[^>]*>", body):
        name, value = (re.search(rf' {key}="([^"]*)"', tag[0]) for key in ("name", "value"))
        is_off = 'type="checkbox"' in tag[0] and " checked" not in tag[0]
        if name is not None and not is_off:
            sent.setdefault(name[1], []).append(unescape(value[1]) if value else "")
    for name, text in re.findall(r'<textarea[^>]*? name="([^"]*)"[^>]*>([^<]*)</textarea>', body):
        sent.setdefault(name, []).append(unescape(text))
    for name, options in re.findall(
        r'<select[^>]*? name="([^"]*)"[^>]*>(.*?)</select>', body, re.S
    ):
        chosen = re.search(r'value="([^"]*)" selected', options)
        sent.setdefault(name, []).append(chosen[1] if chosen else "")
    return sent


def review(client: Client, project: Project, section: str, **changes: str) -> object:
    sent: dict[str, list[str]] = form_of(page_of(client, project), section)
    sent |= {name.replace("__", "."): [value] for name, value in changes.items()}
    return client.post(f"/projects/{project.slug}/policy/{section}/", sent)


def save(client: Client, project: Project, section: str, reviewed: str) -> object:
    hidden = dict(re.findall(r'type="hidden" name="(version|patch)" value="([^"]*)"', reviewed))
    sent = {name: unescape(value) for name, value in hidden.items()}
    return client.post(f"/projects/{project.slug}/policy/{section}/save/", sent)


def test_every_setting_of_the_model_has_a_control(
    sir_client: Client, sir: User, project: Project
) -> None:
    names = set(CONTROL.findall(page_of(sir_client, project)))
    missing = {
        path
        for path in flat(DEFAULT_POLICY.document())
        if not any(name == path or name.startswith(f"{path}.") for name in names)
    }
    assert missing == set()


@pytest.mark.parametrize("section", list(Policy.model_fields))
def test_untouched_form_changes_nothing(
    section: str, sir: User, sir_client: Client, project: Project
) -> None:
    answer = review(sir_client, project, section)
    assert answer.status_code == 303, answer.content.decode()[-3000:]  # type: ignore[attr-defined]
    assert "saved=same" in answer["Location"]  # type: ignore[index]


def test_change_is_shown_then_saved_and_audited(
    sir: User, sir_client: Client, project: Project
) -> None:
    reviewed = review(sir_client, project, "thresholds", thresholds__max_retries="5")
    page = reviewed.content.decode()  # type: ignore[attr-defined]
    assert re.search(r'word-out">3<.*word-in">5<', page, re.S)
    assert Project.objects.get().policy.thresholds.max_retries == 3
    answer = save(sir_client, project, "thresholds", page)
    assert answer.status_code == 303  # type: ignore[attr-defined]
    stood = Project.objects.get()
    assert (stood.policy.thresholds.max_retries, stood.policy_version) == (5, 2)
    event = AuditEvent.objects.get(kind="project.policy_changed")
    assert (event.before, event.after) == ({}, {"thresholds": {"max_retries": 5}})
    assert event.actor == "human:sir"
    page = page_of(sir_client, project)
    assert re.search(r"default 3 <span class=\"own\">changed</span> · sir", page)


def test_each_fault_stands_beside_its_field(
    sir: User, sir_client: Client, project: Project
) -> None:
    answer = review(
        sir_client, project, "thresholds",
        thresholds__max_retries="many", thresholds__s1_simple_threshold="99",
    )  # fmt: skip
    assert answer.status_code == 422  # type: ignore[attr-defined]
    page = answer.content.decode()  # type: ignore[attr-defined]
    for name, words in (
        ("max_retries", "must be a whole number"), ("s1_simple_threshold", "must be at most 25"),
    ):  # fmt: skip
        row = page.partition(f'id="row-policy-thresholds-{name}"')[2].partition("setting-row")[0]
        assert words in row
    assert 'value="many"' in page
    assert not AuditEvent.objects.filter(kind="project.policy_changed").exists()


@pytest.mark.parametrize(
    ("section", "changes", "words"),
    [
        ("triggers", {"triggers__intent_verbs": "build\nx\n" + "y" * 201}, "entry 3: must have"),
        ("commands", {"commands__allow": "make 'test"}, "cannot be split into words"),
        ("limits", {"limits__timeouts_seconds_by_depth": "10\n20"}, "at least 4 entries"),
        ("seats", {"seats__qa": "command"}, "command cannot fill this seat"),
        ("checks", {"checks__toolchains": "[{"}, "must be a list"),
        ("guardrails", {"guardrails__rules__key": "Not A Key"}, "a character that is not allowed"),
    ],
)  # fmt: skip
def test_hostile_or_wrong_values_are_refused(
    section: str,
    changes: dict[str, str],
    words: str,
    sir: User,
    sir_client: Client,
    project: Project,
) -> None:
    answer = review(sir_client, project, section, **changes)
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert words in answer.content.decode()  # type: ignore[attr-defined]
    assert Project.objects.get().policy_version == 1


def test_silence_is_never_consent_to_a_fix(sir: User, sir_client: Client, project: Project) -> None:
    rule = {"outcome": "approve", "after_seconds": "3600", "policy_id": "approve-1h"}
    changes = {f"expiry__medium_defect__{key}": value for key, value in rule.items()}
    answer = review(sir_client, project, "expiry", **changes)
    assert answer.status_code == 422  # type: ignore[attr-defined]
    assert "silence is never consent" in answer.content.decode()  # type: ignore[attr-defined]


def test_expiry_rule_is_set_and_taken_away(sir: User, sir_client: Client, project: Project) -> None:
    rule = {"outcome": "reject", "after_seconds": "3600", "policy_id": "reject-1h"}
    changes = {f"expiry__medium_defect__{key}": value for key, value in rule.items()}
    reviewed = review(sir_client, project, "expiry", **changes)
    save(sir_client, project, "expiry", reviewed.content.decode())  # type: ignore[attr-defined]
    held = Project.objects.get().policy.expiry.medium_defect
    assert held is not None
    assert (held.outcome, held.after_seconds, held.policy_id) == ("reject", 3600, "reject-1h")
    reviewed = review(sir_client, project, "expiry", expiry__medium_defect__outcome="")
    save(sir_client, project, "expiry", reviewed.content.decode())  # type: ignore[attr-defined]
    assert Project.objects.get().policy.expiry.medium_defect is None


def change_behind_the_form(project: Project) -> None:
    update_project(
        project_id=project.pk,
        change=ProjectChange(policy={"limits": {"turns": 9}}),
        actor=SYSTEM,
    )


def test_policy_that_changed_meanwhile_is_not_overwritten(
    sir: User, sir_client: Client, project: Project
) -> None:
    reviewed = review(sir_client, project, "limits", limits__turns="50")
    change_behind_the_form(project)
    answer = save(sir_client, project, "limits", reviewed.content.decode())  # type: ignore[attr-defined]
    assert answer.status_code == 412  # type: ignore[attr-defined]
    page = answer.content.decode()  # type: ignore[attr-defined]
    assert "the policy changed while you edited it" in page
    assert re.search(r'name="limits.turns" value="50"', page)
    assert Project.objects.get().policy.limits.turns == 9


def test_form_of_an_older_version_is_not_even_reviewed(
    sir: User, sir_client: Client, project: Project
) -> None:
    old = form_of(page_of(sir_client, project), "limits")
    change_behind_the_form(project)
    answer = sir_client.post(f"/projects/{project.slug}/policy/limits/", old)
    assert answer.status_code == 412


def test_carried_patch_is_checked_like_any_input(
    sir: User, sir_client: Client, project: Project
) -> None:
    url = f"/projects/{project.slug}/policy/limits/save/"
    stood = project.version
    wrong = sir_client.post(url, {"version": stood, "patch": json.dumps({"turns": -1})})
    assert wrong.status_code == 422
    unknown = sir_client.post(url, {"version": stood, "patch": json.dumps({"no_such": 1})})
    assert unknown.status_code == 422
    hostile = ('{"turns": "\\u0000"}', '{"\\ud800": 1}', '{"turns": NaN}')
    for patch in ("{", "[]", "[" * 100_000, *hostile):
        assert sir_client.post(url, {"version": stood, "patch": patch}).status_code == 422, patch[
            :9
        ]
    for version in ("", "abc", "-1", str(10**20)):
        assert sir_client.post(url, {"version": version, "patch": "{}"}).status_code == 412
    assert sir_client.post(f"/projects/{project.slug}/policy/nothing/", {}).status_code == 404
    assert Project.objects.get().policy_version == 1


def test_typed_message_is_routed_without_storing_anything(
    viewer_client: Client, project: Project
) -> None:
    url = reverse("dashboard:policy_try", args=[project.slug])
    events = AuditEvent.objects.count()
    for text, goes in (
        ("谢谢", "direct, as a message"),
        ("帮我搜索天气", "direct"),
        (
            "从零开始设计、开发并部署整个支付系统，先迁移数据库，然后重构接口，最后上线生产环境",
            "three-step",
        ),
    ):
        answer = viewer_client.post(url, {"text": text}, headers={"HX-Request": "true"})
        assert f"<strong>{goes}</strong>" in answer.content.decode(), text
    assert AuditEvent.objects.count() == events
    whole = viewer_client.post(url, {"text": "谢谢"}).content.decode()
    assert "<html" in whole


def test_typed_message_across_a_red_line_is_told_to_wait_for_sir(
    viewer_client: Client, project: Project
) -> None:
    url = reverse("dashboard:policy_try", args=[project.slug])
    text = "Delete the production database and drop all tables"
    page = viewer_client.post(url, {"text": text}).content.decode()
    assert "A red line: it waits for Sir first" in page
    assert ">Delete the production database</span>" in page
    assert "No signal in the text" not in page


def test_review_tells_which_recent_messages_would_go_elsewhere(
    sir: User, sir_client: Client, project: Project
) -> None:
    for text in ("谢谢", "Implement the greeting", "帮我搜索天气"):
        submit_message(project_id=project.pk, text=text, actor=SYSTEM)
    words = "\n".join(one for one in DEFAULT_POLICY.triggers.small_talk if one != "谢谢")
    answer = review(sir_client, project, "triggers", triggers__small_talk=words)
    page = answer.content.decode()  # type: ignore[attr-defined]
    assert "the last 3 messages tried" in page
    rows = re.findall(
        r'<td class="soft nowrap">([^<]*)</td><td class="nowrap bold">([^<]*)</td>', page
    )
    assert rows == [("direct, as a message", "direct")]
    assert 'class="word-out" lang="zh"' in page


def test_viewer_reads_and_changes_nothing(viewer_client: Client, project: Project) -> None:
    page = page_of(viewer_client, project)
    assert "Only Sir changes it" in page
    assert "Review the changes" not in page
    for url in ("policy/thresholds/", "policy/thresholds/save/"):
        answer = viewer_client.post(
            f"/projects/{project.slug}/{url}", {"version": 1, "patch": "{}"}
        )
        assert answer.status_code == 403
    assert Project.objects.get().policy_version == 1


def test_list_says_how_many_settings_are_a_projects_own(sir: User, sir_client: Client) -> None:
    new_project("plain")
    new_project("own", policy={"limits": {"turns": 9, "depth": 2}})
    page = sir_client.get("/policy/").content.decode()
    assert re.search(r'own</a>.*?<td class="num soft">2</td>', page, re.S)
    assert "all defaults" in page


def test_setting_that_is_new_in_the_model_gets_a_control_of_its_kind() -> None:
    kinds = {kind_of(path) for path in flat(DEFAULT_POLICY.document())}
    assert kinds == {"number", "text", "lines", "choice", "switch", "expiry", "rules", "json"}
