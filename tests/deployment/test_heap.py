"""The heap of a process of many threads: few arenas, and freed pages go back to the system.

Each is tried in a process of its own, whose heap nobody else has grown.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from config.workers import WorkerGroup

pytestmark = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="this C library gives pages back itself"
)
RESIDENT = """
import os, threading
from config.heap import HeapTrim

PAGE = os.sysconf("SC_PAGE_SIZE")

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE

blocks = [bytearray(4_000) for _ in range(20_000)]
# A block at the top keeps the C library from giving back by itself what is free below it.
kept = bytearray(4_000)
full = resident()
blocks.clear()
freed = resident()
trim = HeapTrim(every_seconds=0.02)
trim.start()
pause = threading.Event()
for _ in range(500):
    if resident() < full - 60_000_000:
        break
    pause.wait(0.02)
trim.ask_to_stop()
trim.join(5)
print(full - freed < 30_000_000, resident() < full - 60_000_000, trim.is_alive())
"""
ARENAS = """
import ctypes, sys, tempfile, threading
from config.heap import limit_malloc_arenas

if sys.argv[1] == "limited":
    limit_malloc_arenas()
library = ctypes.CDLL(None)
library.fopen.restype = ctypes.c_void_p
together = threading.Barrier(10)

def grow():
    together.wait(20)
    held = bytearray(40_000)
    together.wait(20)

threads = [threading.Thread(target=grow) for _ in range(10)]
[one.start() for one in threads]
[one.join(20) for one in threads]
with tempfile.NamedTemporaryFile("r") as file:
    stream = ctypes.c_void_p(library.fopen(file.name.encode(), b"w"))
    library.malloc_info(0, stream)
    library.fclose(stream)
    print(file.read().count("<heap nr="))
"""


def told(script: str, *arguments: str) -> list[str]:
    """Run a script in a process of its own. Return the words it printed."""
    done = subprocess.run(  # noqa: S603 - this interpreter and our own text
        [sys.executable, "-c", script, *arguments],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.split()


def test_trim_gives_back_what_the_c_library_keeps() -> None:
    assert told(RESIDENT) == ["True", "True", "False"]


def test_threads_share_two_arenas() -> None:
    assert int(told(ARENAS, "limited")[0]) <= 2
    assert int(told(ARENAS, "unlimited")[0]) > 2


def test_workers_trim_while_they_run(running_workers: WorkerGroup) -> None:
    assert running_workers.trim.is_alive()
    running_workers.ask_to_stop()
    running_workers.trim.join(20)
    assert not running_workers.trim.is_alive()
