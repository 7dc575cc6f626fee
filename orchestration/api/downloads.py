"""A finished file as a download, read piece by piece beside the event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import IO

from asgiref.sync import sync_to_async
from django.http import FileResponse


class PackedFile(FileResponse):
    """A file of any size, never whole in memory.

    Under ASGI Django reads a plain file whole and warns of it; here a thread hands over its pieces.
    """

    block_size = 256 * 1024

    def __init__(
        self, file: IO[bytes], *, name: str, content_type: str, headers: dict[str, str]
    ) -> None:
        super().__init__(
            file, as_attachment=True, filename=name, content_type=content_type, headers=headers
        )

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces in order; none of a file is empty."""
        pieces = iter(self.streaming_content)  # type: ignore[arg-type]
        take = sync_to_async(lambda: next(pieces, b""), thread_sensitive=False)
        while piece := await take():
            yield piece
