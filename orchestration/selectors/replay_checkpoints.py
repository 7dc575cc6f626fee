"""Boards of the past that this process rebuilt before, so that a slider does not begin at zero.

A checkpoint is named by the hash of the seal it stands at: the chain makes that hash speak for
every event before it, so another history at the same position is never answered from here.
Source: DESIGN section 13, UI.md section 5.4 (Replay).
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

from orchestration.rules.replay import PastBoard, PastDecision, PastTask, PastTraffic, PastWork

EVERY = 10_000
"""Events of a project between two checkpoints: what a request folds at most, once it is warm."""
MAX_BYTES = 64_000_000


def _reader(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*[one.name for one in fields(kind)])


_TASK, _WORK, _DECISION = (_reader(kind) for kind in (PastTask, PastWork, PastDecision))


def pack(board: PastBoard) -> bytes:
    """Write a board as bytes. Plain tuples: objects take several times as long each way."""
    plain = (
        (board.position, board.at, board.project_status),
        [_TASK(one) for one in board.tasks.values()],
        [_WORK(one) for one in board.work.values()],
        [_DECISION(one) for one in board.decisions.values()],
        (board.traffic.first, board.traffic.second),
    )
    return pickle.dumps(plain, pickle.HIGHEST_PROTOCOL)


def unpack(packed: bytes) -> PastBoard:
    """Read back what `pack` wrote; it never left this process."""
    head, tasks, work, decisions, traffic = pickle.loads(packed)  # noqa: S301 (as above)
    position, at, status = head
    return PastBoard(
        position=position,
        at=at,
        project_status=status,
        tasks={one[0]: PastTask(*one) for one in tasks},
        work={one[0]: PastWork(*one) for one in work},
        decisions={one[0]: PastDecision(*one) for one in decisions},
        traffic=PastTraffic(*traffic),
    )


class Checkpoints:
    """Packed boards by project, position and hash; those used last are kept. Safe for threads."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[int, int, str], bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def nearest(self, project_id: int, position: int) -> tuple[PastBoard, str] | None:
        """The newest board at or before a position, with the hash that its seal must have."""
        with self._lock:
            known = [one for one in self._held if one[0] == project_id and one[1] <= position]
            if not known:
                return None
            newest = max(known, key=lambda one: one[1])
            self._held.move_to_end(newest)
            packed = self._held[newest]
        return unpack(packed), newest[2]

    def forget(self, project_id: int) -> None:
        """Drop the boards of a project: its history is another one than they were made from."""
        with self._lock:
            for key in [one for one in self._held if one[0] == project_id]:
                self._size -= len(self._held.pop(key))

    def clear(self) -> None:
        """Drop everything: the database is another one."""
        with self._lock:
            self._held.clear()
            self._size = 0

    def keep(self, project_id: int, digest: str, board: PastBoard) -> None:
        """Keep a board as it stands now; those that were not used for longest make room."""
        packed = pack(board)
        with self._lock:
            key = (project_id, board.position, digest)
            self._size += len(packed) - len(self._held.pop(key, b""))
            self._held[key] = packed
            while self._size > self._max_bytes:
                _, dropped = self._held.popitem(last=False)
                self._size -= len(dropped)


checkpoints = Checkpoints()
