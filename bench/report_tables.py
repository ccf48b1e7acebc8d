"""The report as a table for the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import rich.box
import rich.console
import rich.table
import rich.text

from bench.metrics import Table
from bench.report_rows import SYSTEM_TITLES, Row, Verdict
from bench.systems import System

_COLOURS = {Verdict.MET: "green", Verdict.MISSED: "red", Verdict.UNKNOWN: "dim"}
_LAST_COLUMNS = ("ours / theirs", "wanted", "", "ahead of plain")


def terminal_tables(rows: Sequence[Row]) -> rich.console.Group:
    """Return the lines behind what is wanted, and the tables for the terminal."""
    tables = [_terminal_table(table, group) for table, group in _by_table(rows)]
    return rich.console.Group(rich.text.Text(behind(rows)), *tables)


def _terminal_table(title: Table, rows: Sequence[Row]) -> rich.table.Table:
    table = rich.table.Table(
        title=f"{title.replace('`', '')}. Medians (lowest..highest) of all rounds",
        box=rich.box.SIMPLE_HEAD,
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


def markdown_tables(rows: Sequence[Row]) -> str:
    """Return the lines behind what is wanted, and the tables, in Markdown."""
    parts = [behind(rows)]
    parts += [f"### {table}\n\n{_markdown_table(group)}" for table, group in _by_table(rows)]
    return "\n\n".join(parts) + "\n"


def behind(rows: Sequence[Row]) -> str:
    """Return a sentence that names the lines which miss what is wanted."""
    missed = [row for row in rows if row.verdict is Verdict.MISSED]
    judged = sum(row.verdict is not Verdict.UNKNOWN for row in rows)
    if not missed:
        return f"Behind what is wanted: none of {judged} lines."
    named = "; ".join(f"{row.title} ({row.value_text}, wanted {row.requirement})" for row in missed)
    return f"Behind what is wanted, {len(missed)} of {judged} lines: {named}."


def _by_table(rows: Sequence[Row]) -> list[tuple[Table, list[Row]]]:
    """Return the tables that have rows, in their order."""
    groups = [(table, [row for row in rows if row.table is table]) for table in Table]
    return [(table, group) for table, group in groups if group]


def _markdown_table(rows: Sequence[Row]) -> str:
    heads = ["", *SYSTEM_TITLES.values(), *_LAST_COLUMNS]
    lines = [_markdown_row(heads), _markdown_row(["---"] * len(heads))]
    for row in rows:
        values = [row.values[system] for system in System]
        lines.append(
            _markdown_row(
                [row.title, *values, row.ratio, row.requirement, row.verdict, row.versus_plain_loop]
            )
        )
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
