"""Each unsafe setting has a check with an id that never changes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, Tags, run_checks
from django.test import override_settings

OURS = "countersign."


def our_findings() -> set[str]:
    found: list[CheckMessage] = run_checks(tags=[Tags.security], include_deployment_checks=True)
    return {str(message.id) for message in found if str(message.id).startswith(OURS)}


def test_these_settings_are_safe() -> None:
    assert our_findings() == set()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"SECRET_KEY": "short"}, "countersign.E001"),
        ({"SECRET_KEY": "ab" * 40}, "countersign.E001"),
        ({"DEBUG": True}, "countersign.W002"),
        ({"ALLOWED_HOSTS": ["*"]}, "countersign.W003"),
        ({"HOST": "0.0.0.0"}, "countersign.W004"),  # noqa: S104  # the finding under test
        ({"SIR_PASSWORD": "elevenchars"}, "countersign.W005"),
        ({"COUNTERSIGN_UNSANDBOXED": True}, "countersign.W006"),
        ({"REDIS_URL": "redis://localhost"}, "countersign.W007"),
        ({"COUNTERSIGN_WORKSPACE_ROOTS": (Path("/"),)}, "countersign.E002"),
    ],
)
def test_unsafe_setting_is_found(changed: dict[str, Any], expected: str) -> None:
    with override_settings(**changed):
        assert our_findings() == {expected}


@pytest.mark.parametrize(("mode", "expected"), [(0o700, set()), (0o755, {"countersign.W001"})])
def test_data_directory_that_others_can_enter_is_found(
    tmp_path: Path, mode: int, expected: set[str], settings: Any
) -> None:
    tmp_path.chmod(mode)
    settings.COUNTERSIGN_DATA_DIR = tmp_path
    assert our_findings() == expected


def test_finding_is_an_error_only_where_it_must_stop_the_start() -> None:
    read: Callable[..., Any] = run_checks
    with override_settings(SECRET_KEY="short", DEBUG=True):
        assert {message.id for message in read(tags=[Tags.security])} >= {"countersign.E001"}
        assert "countersign.W002" not in {message.id for message in read(tags=[Tags.security])}
    assert settings.SECRET_KEY
