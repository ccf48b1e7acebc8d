"""Which plans a mirror may evaluate: each row alone, and the same row always with the same outcome.

No pyspark: the names come from `plan_tree`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sparkmirror.errors import ConfigError

RECORDS: Final = "records"
"""The name of the records in SQL."""
PROJECT: Final = "Project"
FILTER: Final = "Filter"
ROWS_LEAF: Final = "LogicalRDD"
"""The records in a plan."""
_TRANSPARENT: Final = frozenset({"SubqueryAlias", "View"})
PYTHON_OPERATORS: Final = frozenset({"BatchEvalPython", "ArrowEvalPython"})
"""Operators of the optimised plan that call Python functions."""
_NARROW: Final = frozenset({PROJECT, FILTER, ROWS_LEAF}) | _TRANSPARENT | PYTHON_OPERATORS
_PARSED: Final = frozenset({PROJECT, FILTER, "UnresolvedRelation"}) | _TRANSPARENT
_OF_THE_MOMENT: Final = frozenset(
    {"Now", "LocalTimestamp", "CurrentTimestamp", "CurrentDate", "CurrentTime", "CurrentTimeZone"}
)
"""Expressions that Spark replaces by a value when it plans."""
_TEXT_OR_BYTES: Final = ("binary", "string", "void")
OUTPUT_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "headers": ("map<string,binary>", "map<string,string>", "void"),
    "timestamp": ("timestamp",),
}
"""The columns that a query must give, and their types."""
TOPIC: Final = "topic"
"""The column that a query may give, unchanged or computed: a route by the record."""
_TYPES: Final = {**OUTPUT_TYPES, TOPIC: ("string",)}
UNCHANGED_COLUMNS: Final = ("partition", "offset", "timestamp_type")
"""The columns that it may give unchanged."""


def check_parsed(key: str, operators: Iterable[str]) -> None:
    """Raise ConfigError for the first operator of parsed SQL that is not of one row."""
    _check(key, operators, _PARSED)


def check_operators(key: str, operators: Iterable[str]) -> None:
    """Raise ConfigError for the first operator of an analysed plan that is not of one row."""
    _check(key, operators, _NARROW)


def _check(key: str, operators: Iterable[str], allowed: frozenset[str]) -> None:
    for name in operators:
        if name not in allowed:
            shown = name.removeprefix("Unresolved") or name
            raise ConfigError.of(
                key,
                f"{key} has the operator {shown}; a mirror looks at each record alone: only columns"
                " (SELECT, select, withColumn) and conditions (WHERE, filter) can be used",
            )


def check_expression(key: str, name: str, text: str, *, is_deterministic: bool) -> None:
    """Raise ConfigError for an expression that does not depend on its row alone."""
    if name.endswith("Subquery") or name in ("ListQuery", "Exists"):
        raise ConfigError.of(
            key, f"{key} has a subquery ({name}); a mirror looks at each record alone"
        )
    if not is_deterministic or name in _OF_THE_MOMENT:
        raise ConfigError.of(
            key,
            f"{key} has {text}, which may give the same record other contents each time; after a"
            " crash a mirror evaluates records again to find where it stood",
        )


def check_output(key: str, columns: Iterable[tuple[str, str, str]]) -> None:
    """Raise ConfigError for columns that are no record.

    Each column is its name, its type and the input column that it is, empty if it is computed.
    """
    seen: dict[str, int] = {}
    for name, data_type, source in columns:
        seen[name] = seen.get(name, 0) + 1
        if name in _TYPES:
            if data_type not in _TYPES[name]:
                known = " or ".join(one for one in _TYPES[name] if one != "void")
                raise ConfigError.of(
                    key, f"{key} gives {name} the type {data_type}; cast it to {known}"
                )
        elif name not in UNCHANGED_COLUMNS:
            raise ConfigError.of(
                key, f"{key} gives a column {name}, which no record has; leave it out of the query"
            )
        elif source != name:
            raise ConfigError.of(
                key,
                f"{key} gives {name} another value, which is not supported: select it unchanged,"
                " or leave it out",
            )
    for name, count in seen.items():
        if count > 1:
            raise ConfigError.of(key, f"{key} gives the column {name} {count} times")
    for name in OUTPUT_TYPES:
        if name not in seen:
            raise ConfigError.of(
                key, f"{key} gives no column {name}; select it, as SELECT * or by its name"
            )
