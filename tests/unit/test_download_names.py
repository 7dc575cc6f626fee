"""Names of downloads: one that can be opened, whatever the work was called."""

from __future__ import annotations

import pytest

from orchestration.rules.download_names import download_name


@pytest.mark.parametrize(
    ("name", "kind", "data", "expected"),
    [
        ("reports/tests.json", "data", b"{}", "tests.json"),
        ("Run record", "other", b"$ true", "Run record.txt"),
        ("Step report", "document", b"# Done", "Step report.md"),
        ("figures", "data", b'[{"a": 1}]', "figures.json"),
        ("figures", "data", b"{not json", "figures.txt"),
        ("image", "other", b"\x89PNG\xff", "image.bin"),
        ("nul", "other", b"a\x00b", "nul.bin"),
        ("迁移报告", "document", "# 报告".encode(), "迁移报告.md"),
        ("release 0.3.0 notes", "document", b"x", "release 0.3.0 notes.md"),
        (".gitignore", "config", b"x", ".gitignore.txt"),
        ("", "other", b"x", "artifact.txt"),
        ("deep", "data", b"[" * 100_000, "deep.txt"),
        ("..\\..\\evil", "code", b"x", "evil.txt"),
    ],
)
def test_a_download_has_an_ending(name: str, kind: str, data: bytes, expected: str) -> None:
    assert download_name(name, kind, data) == expected
