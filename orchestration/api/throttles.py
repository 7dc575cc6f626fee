"""Throttle by token: a bucket that refills, counted in this process.

A dead cache or broker must not turn every request into an error, so nothing is shared; with several
web processes the rate holds for each.
Source: DESIGN section 14 ("Conventions").
"""

from __future__ import annotations

import threading
import time
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from orchestration.api.requests import caller_of

BURST = 600
PER_SECOND = 60.0
MAX_KEYS = 10_000
WAIT_ROUND = "countersign.round"
"""In the ASGI scope: how often a long poll asked before; only its first time counts."""


class Buckets:
    """Token buckets by key. Used from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, key: str, *, burst: float, per_second: float) -> float:
        """Take one token. Return 0, or the seconds until the next is there."""
        now = time.monotonic()
        with self._lock:
            left, at = self._left.pop(key, (burst, now))
            left = min(burst, left + (now - at) * per_second)
            wait = 0.0 if left >= 1 else (1 - left) / per_second
            self._left[key] = (left - (0 if wait else 1), now)
            while len(self._left) > MAX_KEYS:
                # The longest untouched one is full again, or nearly so.
                del self._left[next(iter(self._left))]
        return wait

    def forget(self) -> None:
        """Fill every bucket."""
        with self._lock:
            self._left.clear()


buckets = Buckets()


class TokenThrottle(BaseThrottle):
    """Let each token make a burst of requests, then a steady rate."""

    seconds_to_wait = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        """Say whether the request may pass; callers without a credential are refused elsewhere."""
        if not request.user.is_authenticated:
            return True
        scope: dict[str, Any] = getattr(request._request, "scope", {})
        if scope.get(WAIT_ROUND, 0):
            return True
        self.seconds_to_wait = buckets.take(
            caller_of(request).throttle_key,
            burst=getattr(settings, "COUNTERSIGN_API_BURST", BURST),
            per_second=getattr(settings, "COUNTERSIGN_API_PER_SECOND", PER_SECOND),
        )
        return not self.seconds_to_wait

    def wait(self) -> float:
        """Seconds until the next request may pass."""
        return self.seconds_to_wait
