"""One engine a data directory: the second is told who is there, and a dead one holds nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from config.datadir import DataDirHeld, DataDirLock, holder_of

HOLD = """
import sys
from pathlib import Path
from config.datadir import DataDirLock
DataDirLock(Path(sys.argv[1])).acquire(url="http://127.0.0.1:1/")
print("held", flush=True)
sys.stdin.read()
"""


def hold_elsewhere(data_dir: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and code
        [sys.executable, "-c", HOLD, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_second_process_is_told_who_holds_the_directory(tmp_path: Path) -> None:
    with hold_elsewhere(tmp_path) as process:
        with pytest.raises(DataDirHeld) as caught:
            DataDirLock(tmp_path).acquire()
        assert caught.value.holder == {"pid": process.pid, "url": "http://127.0.0.1:1/"}
        assert f"process {process.pid}" in str(caught.value)
        assert holder_of(tmp_path) == caught.value.holder
        process.communicate()


def test_killed_process_leaves_the_directory_free(tmp_path: Path) -> None:
    with hold_elsewhere(tmp_path) as process:
        process.kill()
        process.communicate()
    assert holder_of(tmp_path) is None
    with DataDirLock(tmp_path) as lock:
        lock.note(url="http://127.0.0.1:2/")
        assert holder_of(tmp_path) is not None
    assert holder_of(tmp_path) is None


def test_directory_that_nobody_ever_used_is_free(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
