"""What `sparkmirror config` says to people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import rich.box
import rich.console
import rich.table
import rich.text

from sparkmirror.config.dedicated import Dedicated
from sparkmirror.config.explain import Explanation, Reading
from sparkmirror.config.findings import Review
from sparkmirror.config.landings import compiled, is_at_work
from sparkmirror.config.layers import Origin
from sparkmirror.config.parts import Part
from sparkmirror.model import SourceAndTarget

MOST_ROWS = 200
"""Nobody reads more faults or notices, and drawing a table of them takes minutes."""


def show_flows(
    console: rich.console.Console, dedicated: Dedicated, running: Sequence[SourceAndTarget]
) -> None:
    """Print one line for each flow."""
    table = _table("flow", "connectors", "worker group", "tasks.max")
    for flow in running:
        at_work = [
            str(part)
            for part in Part
            if part.connector and is_at_work(dedicated, compiled(dedicated, flow, part), part)
        ]
        source = compiled(dedicated, flow, Part.SOURCE)
        _row(
            table,
            str(flow),
            ", ".join(at_work) or "none at work",
            dedicated.worker(flow)["group.id"].value,
            source["tasks.max"].value if "tasks.max" in source else "1",
        )
    console.print(table)


def show_settings(console: rich.console.Console, found: Iterable[Explanation]) -> None:
    """Print a table for each part of each flow."""
    for (flow, part), settings in groupby(found, key=lambda one: (one.flow, one.part)):
        table = _table("setting", "value", "from", "instead of")
        for one in settings:
            value = _value(one.value) + ("" if one.is_read else "  (not read)")
            instead = "\n".join(_reading(lost) for lost in one.overrode)
            _row(table, one.key, value, _place(one.origin), instead)
        console.print(f"{flow} {part}", style="bold")
        console.print(table)


def show_reasons(console: rich.console.Console, found: Iterable[Explanation]) -> None:
    """Print a paragraph for each setting."""
    for one in found:
        console.print(f"{one.flow} {one.part}: {one.key} = {_value(one.value)}", style="bold")
        console.print(f"  {_place(one.origin)}")
        for lost in one.overrode:
            console.print(f"  instead of {_reading(lost)}")
        if not one.is_read:
            console.print(f"  (the {one.part} never reads it)")


def show_review(console: rich.console.Console, file: str, review: Review) -> None:
    """Print the faults, then the notices, then the verdict."""
    if review.objections:
        table = _table("line", "key", "fault", "where")
        for objection in review.objections[:MOST_ROWS]:
            places = ", ".join(objection.places)
            _row(table, _line(objection.line), objection.key, objection.message, places)
        console.print(table)
        _print_rest(console, len(review.objections))
    if review.notices:
        table = _table("line", "key", "notice")
        for notice in review.notices[:MOST_ROWS]:
            _row(table, _line(notice.line), notice.key, notice.message)
        console.print(table)
        _print_rest(console, len(review.notices))
    faults, notices = len(review.objections), len(review.notices)
    console.print(f"{file}: {_count(faults, 'fault')}, {_count(notices, 'notice')}.")


def _print_rest(console: rich.console.Console, rows: int) -> None:
    if rows > MOST_ROWS:
        console.print(f"... and {rows - MOST_ROWS} more; --format json lists all.")


def _table(*headings: str) -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _row(table: rich.table.Table, *cells: str) -> None:
    table.add_row(*(rich.text.Text(_printable(cell)) for cell in cells))


def _printable(text: str) -> str:
    """A value may hold anything, and a terminal obeys some of it."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def _value(value: str | None) -> str:
    return "null" if value is None else _printable(value)


def _line(line: int | None) -> str:
    return "-" if line is None else str(line)


def _reading(reading: Reading) -> str:
    return f"{_value(reading.value)}  ({_place(reading.origin)})"


def _place(origin: Origin) -> str:
    if not origin.key:
        return str(origin.rule)
    return f"{origin.rule}, line {_line(origin.line)}: {origin.key}"


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
