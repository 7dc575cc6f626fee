"""Pack an archive as a zip: both documents, the changelog entry, every locked artifact, a list.

Names inside are ours: a number and what is safe of the artifact's own name. The bytes come from the
database, one artifact at a time.
Source: DESIGN section 16.
"""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from typing import IO

from orchestration.contracts.archive import ArchiveDocument
from orchestration.models import Artifact, DeliveryArchive

SPOOLED_BYTES = 8 * 1024 * 1024
MOST_BYTES = 512 * 1024 * 1024
"""Artifacts beyond this are listed with their digest and left out."""
_SAFE = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 80


def zip_name(number: int, path: str) -> str:
    """Name an artifact inside the zip: never a path, never hidden, never the same twice."""
    base = _SAFE.sub("_", path.rpartition("/")[2])[-_LONGEST_NAME:].strip("._")
    return f"artifacts/{number:05d}-{base or 'artifact'}"


def pack_archive(archive: DeliveryArchive) -> IO[bytes]:
    """Write the zip into a temporary file and return it, open at its start."""
    raw = bytes(archive.document.content.data)
    document = ArchiveDocument.model_validate_json(raw)
    at = archive.created_at.timetuple()[:6]
    packed: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=SPOOLED_BYTES)  # noqa: SIM115
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:

        def put(name: str, data: bytes) -> None:
            entry = zipfile.ZipInfo(name, date_time=at)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            made.writestr(entry, data)

        put("archive.md", bytes(archive.markdown.content.data))
        put("archive.json", raw)
        put("changelog-entry.md", archive.changelog_entry.body.encode("utf-8", "replace"))
        listed = []
        left = MOST_BYTES
        for number, one in enumerate(document.deliveries, 1):
            left -= one.size_bytes
            name = zip_name(number, one.path) if left >= 0 else None
            if name is not None:
                row = Artifact.objects.select_related("content").get(pk=int(one.artifact))
                put(name, bytes(row.content.data))
            listed.append({"file": name, **one.model_dump(mode="json")})
        put("manifest.json", json.dumps(listed, ensure_ascii=False, indent=2).encode())
    packed.seek(0)
    return packed
