"""When Sir is told again: reminders at growing intervals, and once before a deadline.

Source: DESIGN section 9 ("Default on expiry: keep waiting, with reminders").
"""

from __future__ import annotations

from datetime import datetime, timedelta

from orchestration.notification_policy import Notifications


def reminder_interval(policy: Notifications, number: int) -> timedelta:
    """How long after the one before the reminder of this number comes. The first is number 1."""
    longest = max(policy.reminder_longest_seconds, policy.reminder_seconds)
    # A growth of 10 overflows a float long before it is reached; the cap is what counts.
    steps = min(number - 1, 64)
    seconds = min(policy.reminder_seconds * policy.reminder_growth**steps, longest)
    return timedelta(seconds=seconds)


def next_telling(
    policy: Notifications,
    *,
    now: datetime,
    reminded: int,
    deadline: datetime | None,
    is_deadline_told: bool,
) -> datetime:
    """When the next reminder is due, or the word that the deadline is near, if that is sooner."""
    reminder = now + reminder_interval(policy, reminded + 1)
    if deadline is None or is_deadline_told:
        return reminder
    warning = max(deadline - timedelta(seconds=policy.deadline_warning_seconds), now)
    return min(reminder, warning)


def is_deadline_near(
    policy: Notifications, *, now: datetime, deadline: datetime | None, is_deadline_told: bool
) -> bool:
    """Whether the word that the deadline is near is due now."""
    if deadline is None or is_deadline_told:
        return False
    return deadline - timedelta(seconds=policy.deadline_warning_seconds) <= now
