"""The table on the terminal, and the same in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import rich.box
import rich.table
import rich.text

from bench.contestants import Who
from bench.rows import HEADS, Mark, Row

_COLOURS = {Mark.HOLDS: "green", Mark.MISSED: "red", Mark.UNKNOWN: "dim"}
_LAST = ("ours / theirs", "wanted", "", "ahead of plain")


def terminal_table(rows: Sequence[Row]) -> rich.table.Table:
    """For people who look at it now."""
    table = rich.table.Table(
        title="Medians (lowest..highest) of all rounds", box=rich.box.SIMPLE_HEAD
    )
    table.add_column("")
    for head in (*HEADS.values(), *_LAST):
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(
            rich.text.Text(row.title),
            *(row.values[who] for who in Who),
            row.ratio,
            row.demand,
            rich.text.Text(row.mark, style=_COLOURS[row.mark]),
            rich.text.Text(row.ahead_of_plain, style=_COLOURS[row.ahead_of_plain]),
        )
    return table


def markdown_table(rows: Sequence[Row]) -> str:
    """For a document."""
    heads = ["", *HEADS.values(), *_LAST]
    lines = [_cells(heads), _cells(["---"] * len(heads))]
    for row in rows:
        values = [row.values[who] for who in Who]
        lines.append(
            _cells([row.title, *values, row.ratio, row.demand, row.mark, row.ahead_of_plain])
        )
    return "\n".join(lines) + "\n"


def _cells(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"
