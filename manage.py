#!/usr/bin/env python
"""Run Countersign's commands: `manage.py serve`, `worker`, `beat`, `migrate` and the rest."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    """Hand the command line to Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
