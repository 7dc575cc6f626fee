"""Tables in plain text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def text_table(rows: Iterable[Sequence[object]], gap: int = 2) -> str:
    """Align rows in columns; numbers go to the right, everything else to the left.

    Rows may be of different lengths. No line ends in a space.
    """
    table = [list(row) for row in rows]
    widths = _widths(table)
    lines = []
    for row in table:
        cells = [_cell(value, width) for value, width in zip(row, widths, strict=False)]
        lines.append((" " * gap).join(cells).rstrip())
    return "\n".join(lines)


def _widths(table: Sequence[Sequence[object]]) -> list[int]:
    columns = max((len(row) for row in table), default=0)
    return [
        max(len(str(row[column])) for row in table if column < len(row))
        for column in range(columns)
    ]


def _cell(value: object, width: int) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value).rjust(width)
    return str(value).ljust(width)
