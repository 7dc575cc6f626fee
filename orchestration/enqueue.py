"""The only place that names background jobs. A message is a wake-up; the rows carry the work."""

from __future__ import annotations

import logging

from celery import current_app
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)

WORK_JOB = "orchestration.jobs.work_job"
SWEEP_JOB = "orchestration.jobs.sweep_job"
SEAL_JOB = "orchestration.jobs.seal_job"
CANARY_JOB = "orchestration.jobs.canary_job"
JOB_NAMES = (WORK_JOB, SWEEP_JOB, SEAL_JOB, CANARY_JOB)
AGENTS_QUEUE = "agents"
CONTROL_QUEUE = "control"
WAKE_EXPIRES_SECONDS = 60
BROKER_SECONDS = 2


def wake_workers(count: int) -> bool:
    """Wake up to `count` idle executor slots. Return whether the broker took the messages.

    A broker that is down loses nothing: the sweeper wakes again as long as rows are waiting.
    """
    try:
        for _ in range(count):
            current_app.send_task(
                WORK_JOB,
                queue=AGENTS_QUEUE,
                expires=WAKE_EXPIRES_SECONDS,
                retry=False,
                ignore_result=True,
            )
    except (OperationalError, OSError):
        logger.warning("broker did not take a wake-up; the sweeper will repeat it")
        return False
    return True


def broker_answers() -> bool:
    """Whether the broker takes a connection. Units: waits at most BROKER_SECONDS."""
    try:
        with current_app.connection_for_write(connect_timeout=BROKER_SECONDS) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, timeout=BROKER_SECONDS)
    except (OperationalError, OSError):
        return False
    return True
