"""The lock on a data directory: one engine at a time works on the files in it."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import TypedDict

LOCK_NAME = "serve.lock"


class Holder(TypedDict):
    """Who holds the directory. Shape: `url` is empty for an engine without a web server."""

    pid: int
    url: str


class DataDirHeld(Exception):
    """Another process works on this data directory. `holder` says which, if it has said so yet."""

    def __init__(self, data_dir: Path, holder: Holder | None) -> None:
        where = f" (process {holder['pid']}, {holder['url'] or 'no address'})" if holder else ""
        super().__init__(f"{data_dir} is already in use by another Countersign{where}")
        self.holder = holder


class DataDirLock:
    """Hold the directory until `release` or the end of the process, however it ends."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._handle: int | None = None

    def acquire(self, *, url: str = "") -> None:
        """Take the lock and note who has it. Errors: DataDirHeld."""
        handle = os.open(self.data_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise DataDirHeld(self.data_dir, _read_holder(self.data_dir)) from None
        self._handle = handle
        self.note(url=url)

    def note(self, *, url: str) -> None:
        """Write down our process and address for whoever meets the lock."""
        if self._handle is not None:
            text = json.dumps(Holder(pid=os.getpid(), url=url)).encode()
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, text, 0)

    def release(self) -> None:
        """Give the directory back; harmless when we do not hold it."""
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> DataDirLock:
        if self._handle is None:
            self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def holder_of(data_dir: Path) -> Holder | None:
    """Return who holds the directory, or None when nobody does."""
    path = data_dir / LOCK_NAME
    if not path.exists():
        return None
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(data_dir) or Holder(pid=0, url="")
    finally:
        os.close(handle)
    return None


def _read_holder(data_dir: Path) -> Holder | None:
    try:
        noted = json.loads((data_dir / LOCK_NAME).read_text(encoding="utf-8"))
        return Holder(pid=int(noted["pid"]), url=str(noted["url"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
