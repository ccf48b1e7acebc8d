"""The report as a table for the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import rich.box
import rich.table
import rich.text

from bench.report_rows import SYSTEM_TITLES, Row, Verdict
from bench.systems import System

_COLOURS = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.UNKNOWN: "dim"}
_LAST_COLUMNS = ("ours / theirs", "wanted", "", "ahead of plain")


def terminal_table(rows: Sequence[Row]) -> rich.table.Table:
    """Return the table for the terminal."""
    table = rich.table.Table(
        title="Medians (lowest..highest) of all rounds", box=rich.box.SIMPLE_HEAD
    )
    table.add_column("")
    for head in (*SYSTEM_TITLES.values(), *_LAST_COLUMNS):
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(
            rich.text.Text(row.title),
            *(row.values[system] for system in System),
            row.ratio,
            row.requirement,
            rich.text.Text(row.verdict, style=_COLOURS[row.verdict]),
            rich.text.Text(row.versus_plain_loop, style=_COLOURS[row.versus_plain_loop]),
        )
    return table


def markdown_table(rows: Sequence[Row]) -> str:
    """Return the table in Markdown."""
    heads = ["", *SYSTEM_TITLES.values(), *_LAST_COLUMNS]
    lines = [_markdown_row(heads), _markdown_row(["---"] * len(heads))]
    for row in rows:
        values = [row.values[system] for system in System]
        lines.append(
            _markdown_row(
                [row.title, *values, row.ratio, row.requirement, row.verdict, row.versus_plain_loop]
            )
        )
    return "\n".join(lines) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
