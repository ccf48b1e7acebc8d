"""Which plans and columns of a query are refused, and with which sentence."""

from __future__ import annotations

import pytest

from sparkmirror.engine.spark.query import plan_checks
from sparkmirror.errors import ConfigError

KEY = "sparkmirror.transform.sql"
RECORD = [
    ("topic", "string", "topic"),
    ("timestamp", "timestamp", "timestamp"),
    ("key", "binary", "key"),
    ("value", "string", ""),
    ("headers", "map<string,binary>", "headers"),
]


@pytest.mark.parametrize(
    "operator",
    ["Sort", "Aggregate", "Generate", "GlobalLimit", "Join", "Union", "Sample", "Window"],
)
def test_an_operator_of_more_than_one_row_is_refused_by_its_name(operator: str) -> None:
    with pytest.raises(ConfigError, match=f"has the operator {operator}; .*each record alone"):
        plan_checks.check_operators(KEY, ["Project", operator, "LogicalRDD"])
    with pytest.raises(ConfigError, match=f"has the operator {operator};"):
        plan_checks.check_parsed(KEY, [operator, "UnresolvedRelation"])


def test_columns_and_conditions_are_accepted() -> None:
    plan_checks.check_operators(KEY, ["Project", "Filter", "SubqueryAlias", "View", "LogicalRDD"])
    plan_checks.check_parsed(KEY, ["Project", "Filter", "SubqueryAlias", "UnresolvedRelation"])


def test_an_unresolved_operator_is_named_as_operators_are_named() -> None:
    with pytest.raises(ConfigError, match="has the operator Having;"):
        plan_checks.check_parsed(KEY, ["UnresolvedHaving"])


@pytest.mark.parametrize(
    ("name", "is_deterministic"), [("Rand", False), ("CurrentTimestamp", True), ("Now", True)]
)
def test_an_expression_that_changes_each_time_is_refused(name: str, is_deterministic: bool) -> None:
    with pytest.raises(ConfigError, match=r"has rand\(\), which may give the same record other"):
        plan_checks.check_expression(KEY, name, "rand()", is_deterministic=is_deterministic)


@pytest.mark.parametrize("name", ["ScalarSubquery", "ListQuery", "Exists"])
def test_a_subquery_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"has a subquery \\({name}\\)"):
        plan_checks.check_expression(KEY, name, "scalarsubquery", is_deterministic=True)


def test_a_function_whose_name_only_resembles_a_subquery_is_accepted() -> None:
    plan_checks.check_expression(KEY, "ArrayExists", "exists", is_deterministic=True)


def test_a_record_is_accepted() -> None:
    plan_checks.check_output(KEY, RECORD)


def test_a_topic_that_is_computed_or_left_out_is_accepted() -> None:
    plan_checks.check_output(KEY, RECORD[1:])
    plan_checks.check_output(KEY, [("topic", "string", ""), *RECORD[1:]])


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (("value", "int", ""), "gives value the type int; cast it to binary or string"),
        (("headers", "string", ""), "gives headers the type string; cast it to map"),
        (("topic", "int", ""), "gives topic the type int; cast it to string"),
        (("topic", "void", ""), "gives topic the type void; cast it to string"),
        (("offset", "bigint", "partition"), "gives offset another value"),
        (("total", "int", ""), "gives a column total, which no record has"),
    ],
)
def test_a_column_that_no_record_can_have_is_refused(
    column: tuple[str, str, str], text: str
) -> None:
    columns = [one for one in RECORD if one[0] != column[0]]
    with pytest.raises(ConfigError, match=text):
        plan_checks.check_output(KEY, [*columns, column])


def test_a_column_that_is_given_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="gives the column value 2 times"):
        plan_checks.check_output(KEY, [*RECORD, RECORD[3]])


@pytest.mark.parametrize("name", ["key", "value", "headers", "timestamp"])
def test_a_part_of_records_that_is_left_out_is_refused(name: str) -> None:
    columns = [one for one in RECORD if one[0] != name]
    with pytest.raises(ConfigError, match=f"gives no column {name}; select it"):
        plan_checks.check_output(KEY, columns)
