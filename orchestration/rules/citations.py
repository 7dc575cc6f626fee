"""Find what a document points at: links to files, files named by its anchors, and footnotes.

What leads out of the workspace, to an address or to a place in the same text, is not ours to check.
Source: DESIGN section 8 ("Independent verification": work that is not code).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from orchestration.rules.spoken_claims import MOST_CHARACTERS, MOST_CLAIMS, SpokenClaim, named_files
from orchestration.rules.trust import read_anchors

FILE, FOOTNOTE = "file", "footnote"
_CODE = re.compile(r"^(```|~~~).*?^\1[`~]*\s*?$|`[^`\n]{1,400}`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(
    r"\[[^\[\]\n]{0,300}\]\(\s*<?([^\s()<>]{1,400})>?(?:\s+\"[^\"\n]{0,200}\")?\s*\)"
)
_TARGET = re.compile(r"^ {0,3}\[(?!\^)[^\[\]\n]{1,300}\]:\s+<?([^\s<>]{1,400})>?", re.MULTILINE)
_NOTE = re.compile(r"\[(\^[^\[\]\s]{1,60})\](:?)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:|//")


def find_citations(text: str, *, folder: str = "") -> list[SpokenClaim]:
    """List what a document in `folder` points at, each once. Shape: at most 100."""
    bare = _CODE.sub(" ", text[:MOST_CHARACTERS])
    found: dict[str, SpokenClaim] = {}
    for claim in (*_files(bare, folder), *_undefined_notes(bare)):
        found.setdefault(claim.key, claim)
        if len(found) >= MOST_CLAIMS:
            break
    return list(found.values())


def _files(text: str, folder: str) -> Iterator[SpokenClaim]:
    targets = [*_LINK.findall(text), *_TARGET.findall(text)]
    paths = [_path(one) for one in targets if not _SCHEME.match(one)]
    for anchor in read_anchors(text).anchors:
        paths += named_files(anchor.text)
    for path in paths:
        # PostgreSQL stores no NUL, and no file is called by what cannot be seen.
        if path.isprintable() and path.strip("/") and not path.endswith("/"):
            yield SpokenClaim(FILE, f"cites {path}", path=path, folder=folder)


def _path(target: str) -> str:
    """The file of a target: without the place in it, and from the workspace's root."""
    return unquote(re.split(r"[#?]", target, maxsplit=1)[0]).removeprefix("./").lstrip("/")


def _undefined_notes(text: str) -> Iterator[SpokenClaim]:
    notes = _NOTE.findall(text)
    defined = {name for name, colon in notes if colon}
    for name, _ in notes:
        if name not in defined:
            yield SpokenClaim(FOOTNOTE, f"cites [{name}]", path=f"[{name}]")
