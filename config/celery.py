"""The Celery application and its schedule. Every entry expires: a late wake-up is worth nothing."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

SWEEP_SECONDS = 3.0
SEAL_SECONDS = 0.25
CANARY_SECONDS = 10.0

app = Celery("countersign")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Threads that did not create the app (every request under ASGI) fall back to the default app.
app.set_default()
app.conf.imports = ("orchestration.jobs",)
app.conf.beat_schedule = {
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
}
