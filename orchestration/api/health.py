"""The probes: alive, ready, measured. They name no project and need no sign-in.

Source: DESIGN sections 3 (canary) and 19.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from orchestration.api.metrics import registry
from orchestration.enqueue import broker_answers
from orchestration.seats.sandboxing import sandbox_report
from orchestration.services.audit import sealer_lag_seconds
from orchestration.services.health import (
    RED_AFTER_SECONDS,
    canary_age_seconds,
    database_answers,
)

SEALER_RED_AFTER_SECONDS = 30.0
NO_STORE = {"Cache-Control": "no-store"}


@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """Say that this process answers; nothing else is looked at."""
    return JsonResponse({"status": "alive"}, headers=NO_STORE)


@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Say whether the system can work: 200, or 503 naming what is wrong."""
    checks = {
        "database": _checked(_database),
        "broker": _checked(_broker),
        "canary": _checked(_canary),
        "sealer": _checked(_sealer),
        "sandbox": _sandbox(),
    }
    is_ready = all(check["ok"] for check in checks.values())
    body = {"status": "ready" if is_ready else "not_ready", "checks": checks}
    response = JsonResponse(body, status=200 if is_ready else 503, headers=NO_STORE)
    # A probe asks every few seconds; its answer is the message, not an error of ours.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


@require_safe
def metrics(_request: HttpRequest) -> HttpResponse:
    """Give the metrics in Prometheus' text format."""
    try:
        text = generate_latest(registry)
    except DatabaseError:
        return HttpResponse("the database does not answer\n", status=503, headers=NO_STORE)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST, headers=NO_STORE)


def _checked(check: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run one check; a database that is down makes it red instead of an error page."""
    try:
        return check()
    except DatabaseError:
        return {"ok": False, "detail": "the database does not answer"}


def _database() -> dict[str, Any]:
    return {"ok": database_answers()}


def _broker() -> dict[str, Any]:
    is_up = broker_answers()
    return {"ok": is_up} if is_up else {"ok": False, "detail": "the broker does not answer"}


def _canary() -> dict[str, Any]:
    age = canary_age_seconds()
    if age is None:
        return {"ok": False, "age_seconds": None, "detail": "no worker has answered yet"}
    rounded = round(age, 3)
    if age < RED_AFTER_SECONDS:
        return {"ok": True, "age_seconds": rounded}
    detail = f"no worker answered for {round(age)} s"
    return {"ok": False, "age_seconds": rounded, "detail": detail}


def _sandbox() -> dict[str, Any]:
    """Tell what code of agents runs in, in this process; to have none is no fault."""
    report = sandbox_report()
    held = report.sandbox
    return {
        "ok": True,
        "mechanism": held.kind if held is not None else None,
        "is_switched_off": report.is_switched_off,
        "limits": list(held.limits) if held is not None else [],
        "tried": {one.kind: one.why for one in report.tried if one.sandbox is None},
    }


def _sealer() -> dict[str, Any]:
    lag = sealer_lag_seconds()
    return {"ok": lag < SEALER_RED_AFTER_SECONDS, "lag_seconds": round(lag, 3)}
