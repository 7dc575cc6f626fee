"""Check that every relative link of a Markdown file leads to a file in this directory."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"\]\(<?([^)>]+)>?\)")


def main() -> int:
    """Check the links of one file; exit 1 when one leads nowhere, or there is none to check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", type=Path)
    options = parser.parse_args()
    targets = LINK.findall(options.document.read_text(encoding="utf-8"))
    relative = [target for target in targets if "://" not in target and not target.startswith("#")]
    broken = [
        target
        for target in relative
        if not (options.document.parent / unquote(target.partition("#")[0])).is_file()
    ]
    for target in broken:
        print(f"{options.document}: {target} leads nowhere")
    print(f"{len(relative)} links checked, {len(broken)} broken", flush=True)
    return 1 if broken or not relative else 0


if __name__ == "__main__":
    sys.exit(main())
