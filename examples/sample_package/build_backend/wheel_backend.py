"""Build this package's wheel and source archive with nothing but Python (PEP 517, PEP 427)."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_DAY_OF_ZIP = (1980, 1, 1, 0, 0, 0)
SOURCES = ("pyproject.toml", "README.md", "build_backend", "tests")


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, object] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Write the wheel and return its file name. The same sources always give the same bytes."""
    project = _project()
    name, version = project["name"], project["version"]
    info = f"{name}-{version}.dist-info"
    members = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in _files(name)}
    members[f"{info}/METADATA"] = _metadata(project).encode()
    members[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: wheel_backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = "".join(f"{path},{_digest(data)},{len(data)}\n" for path, data in members.items())
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    file_name = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / file_name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in members.items():
            entry = zipfile.ZipInfo(path, FIRST_DAY_OF_ZIP)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return file_name


def build_sdist(sdist_directory: str, config_settings: dict[str, object] | None = None) -> str:
    """Write the source archive and return its file name."""
    project = _project()
    base = f"{project['name']}-{project['version']}"
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as archive:
        for path in [*_files(project["name"]), *_files(*SOURCES)]:
            archive.add(path, f"{base}/{path.relative_to(ROOT).as_posix()}")
        data = _metadata(project).encode()
        entry = tarfile.TarInfo(f"{base}/PKG-INFO")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return f"{base}.tar.gz"


def _project() -> dict[str, str]:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        return tomllib.load(stream)["project"]


def _files(*names: str) -> Iterator[Path]:
    for name in names:
        path = ROOT / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (file for file in found if file.is_file() and "__pycache__" not in file.parts)


def _metadata(project: dict[str, str]) -> str:
    return (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        f"Summary: {project['description']}\nRequires-Python: {project['requires-python']}\n"
    )


def _digest(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={digest.decode()}"
