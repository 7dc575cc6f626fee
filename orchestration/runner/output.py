"""Take in what a command prints: decode, cut into lines, count, and stop at the limit."""

from __future__ import annotations

import codecs
from collections.abc import Callable

TAIL_BYTES = 8192
LINE_LIMIT_CHARS = 8192
"""A line longer than this is handed on in pieces, so that one endless line needs no memory."""


class OutputCollector:
    """Hand a byte stream on as text, keeping only its tail and its size.

    `on_output` gets whole lines where there are any, several at a time, at most `limit_bytes`
    in all; what comes later is only counted and seen in the tail. Invalid UTF-8 and NUL become
    U+FFFD, since no database column and no log page can hold them.
    """

    def __init__(
        self, on_output: Callable[[str], None], *, limit_bytes: int, search_for: str | None
    ) -> None:
        self.total_bytes = 0
        self.is_text_found = search_for == ""
        self._on_output = on_output
        self._limit_bytes = limit_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._tail = bytearray()
        self._line = ""
        self._search_for = search_for or ""
        self._search_carry = ""

    @property
    def is_over_limit(self) -> bool:
        """Say whether more came than `limit_bytes`."""
        return self.total_bytes > self._limit_bytes

    @property
    def has_partial_line(self) -> bool:
        """Say whether text waits for the end of its line."""
        return bool(self._line)

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""
        room = max(0, self._limit_bytes - self.total_bytes)
        self.total_bytes += len(data)
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]
        if room:
            self._take(self._decoder.decode(data[:room]))

    def flush(self) -> None:
        """Hand on a line that has not ended yet."""
        if self._line:
            line, self._line = self._line, ""
            self._on_output(line)

    def finish(self) -> None:
        """Hand on what is left, a broken last character included."""
        self._take(self._decoder.decode(b"", final=True))
        self.flush()

    def tail(self) -> str:
        """Return the last 8 kB, starting at a whole character."""
        kept = bytes(self._tail[-TAIL_BYTES:])
        if self.total_bytes > len(kept):
            for _ in range(3):  # a character is cut at most three bytes from its end
                if 0x80 <= kept[0] < 0xC0:
                    kept = kept[1:]
        return kept.decode("utf-8", errors="replace").replace("\0", "\ufffd")

    def _take(self, text: str) -> None:
        """Search the text and hand its whole lines on."""
        if not text:
            return
        text = text.replace("\0", "\ufffd")
        self._search(text)
        whole, end, self._line = (self._line + text).rpartition("\n")
        if end:
            self._on_output(whole + end)
        if len(self._line) > LINE_LIMIT_CHARS:
            self.flush()

    def _search(self, text: str) -> None:
        """Look for the expected text, also across the border of two reads."""
        if self._search_for and not self.is_text_found:
            window = self._search_carry + text
            self.is_text_found = self._search_for in window
            self._search_carry = window[-len(self._search_for) :]
