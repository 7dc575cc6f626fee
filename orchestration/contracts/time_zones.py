"""Names of time zones as people write them."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def is_time_zone(name: str) -> bool:
    """Say whether the time zone database knows a name; names that leave it are unknown too."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return bool(name)
