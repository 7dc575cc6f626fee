"""Log lines: one line a record, `key=value`, with the id of the request that caused it."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")

PLAIN_KEYS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "request_id"}
UNPRINTED_KEYS = frozenset({"request", "taskName", "status_code", "color_message", "data"})


class RequestIdFilter(logging.Filter):
    """Put the current request id on each record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add `request_id`; let every record pass."""
        record.request_id = current_request_id.get()
        return True


class LineFormatter(logging.Formatter):
    """Write `at level logger request_id msg` and the record's extra keys, quoted where needed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line; a traceback follows on its own lines."""
        at = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds")
        pairs = {
            "at": at,
            "level": record.levelname.lower(),
            "logger": record.name,
            "request_id": getattr(record, "request_id", ""),
            "msg": record.getMessage(),
        }
        for key, value in vars(record).items():
            if key not in PLAIN_KEYS and key not in UNPRINTED_KEYS:
                pairs[key] = str(value)
        line = " ".join(f"{key}={_quoted(value)}" for key, value in pairs.items() if value)
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _quoted(value: str) -> str:
    # JSON quoting keeps a hostile line break from forging a second record.
    if value.isprintable() and not any(mark in value for mark in ' "='):
        return value
    return json.dumps(value, ensure_ascii=False)
