"""Check that a file is valid JSON and holds a text; say so in one line.

Usage: check_json.py FILE [TEXT]. Exit code 1 when it is not so.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Read the file and look for the text. Return the exit code."""
    path, wanted = Path(arguments[0]), arguments[1] if len(arguments) > 1 else ""
    try:
        text = path.read_text(encoding="utf-8")
        json.loads(text)
    except (OSError, ValueError) as error:
        print(f"{path}: {error}")
        return 1
    if wanted not in text:
        print(f"{path}: valid JSON, but without {wanted!r}")
        return 1
    print(
        f"{path}: valid JSON, {len(text.encode())} bytes" + (f", holds {wanted}" if wanted else "")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
