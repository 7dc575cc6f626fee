"""The part of the policy that says when Sir is told and reminded of an open decision."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from orchestration.contracts.time_zones import is_time_zone


def _time_zone(value: str) -> str:
    """Refuse a name that the time zone database does not know."""
    if not is_time_zone(value):
        raise ValueError("is not the name of a time zone, such as Asia/Shanghai")
    return value


Seconds = Annotated[int, Field(strict=True, ge=1, le=366 * 86_400)]
SecondsOrNone = Annotated[int, Field(strict=True, ge=0, le=366 * 86_400)]
TimeOfDay = Annotated[str, Field(strict=True, pattern=r"\A([01][0-9]|2[0-3]):[0-5][0-9]\z")]
TimeZone = Annotated[str, Field(strict=True, max_length=64), AfterValidator(_time_zone)]


class Notifications(BaseModel):
    """When Sir is told and reminded of an open decision, and when the day's digest goes out.

    Reminders come after `reminder_seconds`, then each `reminder_growth` times later than the one
    before, at most `reminder_longest_seconds` apart. What leaves the building waits so long and
    goes only when the item is still open and unseen. Times of day are in `time_zone`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    reminder_seconds: Seconds = 86_400
    reminder_growth: Annotated[float, Field(ge=1, le=10)] = 2.0
    reminder_longest_seconds: Seconds = 604_800
    deadline_warning_seconds: Seconds = 3_600
    delay_seconds: SecondsOrNone = 300
    p0_delay_seconds: SecondsOrNone = 0
    digest_at: TimeOfDay = "08:00"
    time_zone: TimeZone = "UTC"
