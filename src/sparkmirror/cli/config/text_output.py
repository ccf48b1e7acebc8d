"""The text output of `sparkmirror config`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import rich.box
import rich.console
import rich.table
import rich.text

from sparkmirror.cli.config.flow_lanes import NO_LANE, flow_lane
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.provenance import ConfigOrigin
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.explain import ExplainedValue, SettingExplanation
from sparkmirror.config.review.findings import ValidationReport
from sparkmirror.config.review.key_usage import compiled_config, is_part_enabled
from sparkmirror.model import SourceAndTarget

TRANSFORMS = "transforms"
PIPE_WIDTH = 160
"""The width of a table if the output is no terminal."""
MAX_ROWS = 200
"""The largest number of faults or notices in a table. A table of thousands takes minutes."""


def new_console(*, stderr: bool = False) -> rich.console.Console:
    """A console on standard output, or on standard error."""
    console = rich.console.Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def show_flows(
    console: rich.console.Console, config: MirrorMakerConfig, running: Sequence[SourceAndTarget]
) -> None:
    """Print one line for each flow."""
    table = _table("flow", "connectors", "worker group", "tasks.max", "records")
    for flow in running:
        enabled = [
            str(part)
            for part in FlowPart
            if part.connector and is_part_enabled(config, compiled_config(config, flow, part), part)
        ]
        source = compiled_config(config, flow, FlowPart.SOURCE)
        _row(
            table,
            str(flow),
            ", ".join(enabled) or "none enabled",
            config.layered_worker_config(flow)["group.id"].value,
            source["tasks.max"].value if "tasks.max" in source else "1",
            str(flow_lane(config, flow) or NO_LANE) if str(FlowPart.SOURCE) in enabled else "-",
        )
    console.print(table)


def show_settings(
    console: rich.console.Console, explanations: Iterable[SettingExplanation]
) -> None:
    """Print a table for each part of each flow."""
    for (flow, part), settings in groupby(explanations, key=lambda one: (one.flow, one.part)):
        table = _table("setting", "value", "from", "instead of")
        for one in settings:
            value = _value_text(one.value) + _effect_text(one)
            instead = "\n".join(_overridden_text(lost) for lost in one.overridden)
            _row(table, one.key, value, _origin_text(one.origin), instead)
        console.print(f"{flow} {part}", style="bold")
        console.print(table)


def _effect_text(one: SettingExplanation) -> str:
    if one.no_effect:
        return "  (no effect)"
    return "" if one.is_read else "  (not read)"


def show_explanations(
    console: rich.console.Console,
    config: MirrorMakerConfig,
    explanations: Iterable[SettingExplanation],
) -> None:
    """Print a paragraph for each setting."""
    for one in explanations:
        console.print(f"{one.flow} {one.part}: {one.key} = {_value_text(one.value)}", style="bold")
        console.print(f"  {_origin_text(one.origin)}")
        for lost in one.overridden:
            console.print(f"  instead of {_overridden_text(lost)}")
        if one.no_effect:
            console.print(f"  no effect: {one.no_effect}")
        elif not one.is_read:
            console.print(f"  no effect: the {one.part} does not read it")
        if one.key == TRANSFORMS and one.part is FlowPart.SOURCE:
            console.print(f"  lane {flow_lane(config, one.flow) or NO_LANE}")


def show_validation_report(
    console: rich.console.Console, file: str, report: ValidationReport
) -> None:
    """Print the faults, the notices, and how many there are of each."""
    if report.errors:
        table = _table("line", "key", "fault", "where")
        for error in report.errors[:MAX_ROWS]:
            locations = ", ".join(error.locations)
            _row(table, _line_text(error.line), error.key, error.message, locations)
        console.print(table)
        _print_omitted(console, len(report.errors))
    if report.notices:
        table = _table("line", "key", "notice")
        for notice in report.notices[:MAX_ROWS]:
            _row(table, _line_text(notice.line), notice.key, notice.message)
        console.print(table)
        _print_omitted(console, len(report.notices))
    faults, notices = len(report.errors), len(report.notices)
    console.print(f"{file}: {_count_text(faults, 'fault')}, {_count_text(notices, 'notice')}.")


def _print_omitted(console: rich.console.Console, rows: int) -> None:
    if rows > MAX_ROWS:
        console.print(f"... and {rows - MAX_ROWS} more; --format json lists all.")


def _table(*headings: str) -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _row(table: rich.table.Table, *cells: str) -> None:
    table.add_row(*(rich.text.Text(_printable(cell)) for cell in cells))


def _printable(text: str) -> str:
    """Escape control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


def _value_text(value: str | None) -> str:
    return "null" if value is None else _printable(value)


def _line_text(line: int | None) -> str:
    return "-" if line is None else str(line)


def _overridden_text(lost: ExplainedValue) -> str:
    return f"{_value_text(lost.value)}  ({_origin_text(lost.origin)})"


def _origin_text(origin: ConfigOrigin) -> str:
    if not origin.key:
        return str(origin.rule)
    return f"{origin.rule}, line {_line_text(origin.line)}: {origin.key}"


def _count_text(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
