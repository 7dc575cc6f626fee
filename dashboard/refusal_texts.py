"""Refusals that services say in English, for the page in the reader's language.

Shape: as the tables of `engine_texts`, which reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from orchestration.workflows.playbook import BESIDE_IT, NO_DIRECTORY

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

UPLOADS: Mapping[str, str | StrPromise] = {
    NO_DIRECTORY: _(
        "{playbook_dir} names no directory in an upload. Write the full path on the server, or a "
        "path inside the workspace."
    ),
    BESIDE_IT: _(
        "The playbook names files beside it, and an upload brings none. Change the steps below, or "
        "run it on the server: manage.py run_playbook FILE --project SLUG"
    ),
}
