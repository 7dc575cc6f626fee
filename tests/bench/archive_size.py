"""How long the delivery archive of a root takes as its steps grow, both documents written out.

`python -m tests.bench.archive_size LAYERS` prints the median of 3 in seconds; a layer has 100
steps. What is left out is three inserts.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.core.management import call_command
from django.utils import timezone

from orchestration.models import Task
from orchestration.rules.archive_text import archive_markdown
from orchestration.selectors.archive_document import read_archive
from tests import factories
from tests.bench.installation import layered_plan


def main(layers: int) -> int:
    """Do the work, then time what its archive costs."""
    call_command("migrate", interactive=False, verbosity=0)
    project = factories.new_project(policy={"limits": {"children": 1_000}})
    root = factories.submit_plan(project, *layered_plan(layers, 100)["steps"])
    factories.drive(project)
    root.refresh_from_db()
    if root.status != "done":
        raise RuntimeError(f"the root is {root.status}")
    sys.stdout.write(f"{statistics.median(_written(root) for _ in range(3)):.3f}\n")
    return 0


def _written(root: Task) -> float:
    began = time.perf_counter()
    document = read_archive(root, number=2, at=timezone.now())
    archive_markdown(document).encode()
    document.model_dump_json(indent=2).encode()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
