"""Check a wheel: its record matches its content, and its packages can be imported from it."""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path


def main() -> int:
    """Check one wheel; exit 1 with every fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    options = parser.parse_args()
    with zipfile.ZipFile(options.wheel) as wheel:
        contents = {name: wheel.read(name) for name in wheel.namelist()}
    faults = check_record(contents)
    tops = {name.split("/")[0] for name in contents if name.endswith("/__init__.py")}
    packages = sorted(name for name in tops if name.isidentifier())
    for package in packages:
        faults += check_import(options.wheel, package)
    for fault in faults:
        print(fault)
    print(f"{options.wheel.name}: {len(contents)} files, {len(faults)} faults", flush=True)
    return 1 if faults or not packages else 0


def check_record(contents: dict[str, bytes]) -> list[str]:
    """Compare every file with the RECORD of the wheel."""
    records = [name for name in contents if name.endswith(".dist-info/RECORD")]
    if len(records) != 1:
        return [f"{len(records)} RECORD files instead of one"]
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(contents[records[0]].decode())) if row}
    faults = [f"{name} is not in RECORD" for name in contents.keys() - rows.keys()]
    faults += [f"{name} is only in RECORD" for name in rows.keys() - contents.keys()]
    for name in contents.keys() & rows.keys() - {records[0]}:
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest())
        if rows[name] != f"sha256={digest.decode().rstrip('=')}":
            faults.append(f"{name} differs from its RECORD")
    return sorted(faults)


def check_import(wheel: Path, package: str) -> list[str]:
    """Import a package straight from the wheel, in a process that sees nothing else of it."""
    code = (
        f"import sys; sys.path.insert(0, sys.argv[1]); import {package}; print({package}.__file__)"
    )
    answer = subprocess.run(  # noqa: S603 (our own interpreter)
        [sys.executable, "-I", "-B", "-c", code, str(wheel.resolve())],
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        return [f"{package} cannot be imported: {answer.stderr.strip().splitlines()[-1]}"]
    if wheel.name not in answer.stdout:
        return [f"{package} was imported from {answer.stdout.strip()}, not from the wheel"]
    print(f"imported {package} from the wheel", flush=True)
    return []


if __name__ == "__main__":
    sys.exit(main())
