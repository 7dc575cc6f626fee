"""The Celery application and its schedule. Every entry expires: a late wake-up is worth nothing."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# `serve` and `worker` run the checks that may stop a start; Celery would run all, once a worker.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

SWEEP_SECONDS = 3.0
SEAL_SECONDS = 0.4
CANARY_SECONDS = 10.0
NOTIFY_SECONDS = 5.0
INTEGRITY_SECONDS = 600.0
SCHEDULE: dict[str, dict[str, Any]] = {
    "sweep": {
        "task": "orchestration.jobs.sweep_job",
        "schedule": SWEEP_SECONDS,
        "options": {"queue": "control", "expires": 2 * SWEEP_SECONDS},
    },
    "seal": {
        "task": "orchestration.jobs.seal_job",
        "schedule": SEAL_SECONDS,
        "options": {"queue": "control", "expires": 4 * SEAL_SECONDS},
    },
    "canary": {
        "task": "orchestration.jobs.canary_job",
        "schedule": CANARY_SECONDS,
        "options": {"queue": "control", "expires": 2 * CANARY_SECONDS},
    },
    "notify": {
        "task": "orchestration.jobs.notify_job",
        "schedule": NOTIFY_SECONDS,
        "options": {"queue": "control", "expires": 2 * NOTIFY_SECONDS},
    },
    "integrity": {
        "task": "orchestration.jobs.integrity_job",
        "schedule": INTEGRITY_SECONDS,
        "options": {"queue": "control", "expires": 2 * INTEGRITY_SECONDS},
    },
}


def make_app() -> Celery:
    """Build an application. A worker selects its queues on its app, so each worker needs one."""
    made = Celery("countersign")
    made.config_from_object("django.conf:settings", namespace="CELERY")
    made.conf.imports = ("orchestration.jobs",)
    made.conf.beat_schedule = SCHEDULE
    return made


def keep_own_logging(**_options: Any) -> None:
    """Leave the loggers as the settings made them; a connected receiver is what Celery asks for."""


signals.setup_logging.connect(keep_own_logging)
app = make_app()
# Threads that did not create the app (every request under ASGI) fall back to the default app.
app.set_default()
