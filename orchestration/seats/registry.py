"""Which backends exist, and which of them fills a seat under a policy.

`COUNTERSIGN_EXTRA_SEATS` names further backend classes; they are loaded once, when first asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from django.conf import settings
from django.utils.module_loading import import_string

from orchestration.policy import Policy
from orchestration.seats.base import SeatBackend, SeatJob
from orchestration.seats.command import CommandSeat
from orchestration.seats.external import ExternalSeat
from orchestration.seats.rules import RulesSeat

EXTERNAL = "external"


@lru_cache(maxsize=1)
def backends() -> Mapping[str, SeatBackend]:
    """Every known backend by name."""
    known: list[SeatBackend] = [RulesSeat(), CommandSeat(), ExternalSeat()]
    known += [import_string(path)() for path in settings.COUNTERSIGN_EXTRA_SEATS]
    return MappingProxyType({backend.name: backend for backend in known})


def pick_backend(job: SeatJob, policy: Policy) -> SeatBackend | None:
    """Choose the first backend of the policy's list that can fill the seat, or None."""
    known = backends()
    for name in policy.backends(job.seat):
        backend = known.get(name)
        if backend is not None and backend.can_fill(job):
            return backend
    return None


def worker_backends() -> tuple[str, ...]:
    """Names of the backends that our own workers run."""
    return tuple(name for name in backends() if name != EXTERNAL)
