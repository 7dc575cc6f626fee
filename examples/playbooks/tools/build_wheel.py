"""Build a wheel with the backend that a repository's pyproject.toml names (PEP 517).

A front end for backends that are at hand: in the repository itself, or installed beside this
interpreter. Nothing is downloaded.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from repository_files import read_pyproject


def main() -> int:
    """Build the current directory's wheel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    system = read_pyproject(Path.cwd()).get("build-system")
    if not system or "build-backend" not in system:
        print("pyproject.toml names no build backend", flush=True)
        return 1
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(Path(path).resolve()) for path in system.get("backend-path", [])]
    module, _, attribute = str(system["build-backend"]).partition(":")
    try:
        backend = importlib.import_module(module)
    except ImportError as error:
        print(f"the build backend {module} is not installed: {error}", flush=True)
        return 1
    for name in filter(None, attribute.split(".")):
        backend = getattr(backend, name)
    options.directory.mkdir(parents=True, exist_ok=True)
    name = backend.build_wheel(str(options.directory.resolve()))
    print(f"built {options.directory / name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
