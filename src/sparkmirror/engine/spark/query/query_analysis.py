"""From a connector's query to a checked plan in Spark's session, in the driver.

On a cluster also in the Spark of a slot (`executor_spark`). The plan is a temporary view, by which
the slots find it. Commands are never run: SQL is parsed, and
refused by its operators, before Spark resolves anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.copy.settings import CopySettings
from sparkmirror.engine.gateway_process import GatewayAddress
from sparkmirror.engine.spark.query import plan_checks, plan_tree
from sparkmirror.engine.spark.query.compiled_query import CompiledQuery, compile_query
from sparkmirror.engine.spark.query.jvm_gateway import open_gateway
from sparkmirror.engine.spark.query.jvm_projection import Jvm
from sparkmirror.engine.spark.query.query_evaluator import QueryEvaluator
from sparkmirror.engine.spark.query.record_columns import RECORD_SCHEMA
from sparkmirror.errors import ConfigError, DriverLost
from sparkmirror.transforms.spark_query import SparkQuery, spark_query

VIEW_PREFIX = "sparkmirror_"


def view_name(chain: str) -> str:
    """The view of a query, by the fingerprint of the connector's transformations."""
    return VIEW_PREFIX + chain[:32]


def register_query(
    session: SparkSession, query: SparkQuery, view: str, modules: PluginModuleAllowlist
) -> None:
    """Check a query and create its view. Raises ConfigError if the query cannot be used."""
    rows = _records(session)
    try:
        result = _run_sql(session, rows, query) if query.sql else _call(rows, query, modules)
        _check_plan(query.key, result)
        optimised = _java(result).queryExecution().optimizedPlan()
        compile_query(Jvm(_gateway(session)), query.key, optimised)
        result.createOrReplaceTempView(view)
    except PySparkException as error:
        raise ConfigError.of(query.key, f"{query.key}: {_first_line(str(error))}") from error
    except Py4JJavaError as error:
        text = _first_line(str(error.java_exception.getMessage()))
        raise ConfigError.of(query.key, f"{query.key}: {text}") from error
    except Py4JError as error:
        raise DriverLost(f"Spark does not answer: {error}") from error


def slot_evaluator(address: GatewayAddress, settings: CopySettings) -> QueryEvaluator:
    """The evaluator of a task in a slot, over a gateway on its computer. Raises DriverLost."""
    query = spark_query(settings.transforms)
    assert query is not None, "there is a query to evaluate"
    gateway = open_gateway(*address)
    return evaluator_of(gateway, view_name(settings.chain), query.key)


def evaluator_of(gateway: Any, view: str, key: str) -> QueryEvaluator:
    """The evaluator of a view, over any gateway to Spark's JVM. Raises DriverLost."""
    try:
        return QueryEvaluator(_compiled_view(gateway, view, key))
    except (Py4JError, PySparkException) as error:
        raise DriverLost(f"Spark does not have the query of {key}: {error}") from error


def _compiled_view(gateway: Any, view: str, key: str) -> CompiledQuery:
    jvm = Jvm(gateway)
    plan = jvm.session.table(view).queryExecution().optimizedPlan()
    return compile_query(jvm, key, plan)


def _records(session: SparkSession) -> DataFrame:
    """The records, as a DataFrame without rows."""
    empty = session.sparkContext.emptyRDD()
    return session.createDataFrame(empty, RECORD_SCHEMA)


def _run_sql(session: SparkSession, rows: DataFrame, query: SparkQuery) -> DataFrame:
    parser = _java_session(session).sessionState().sqlParser()
    parsed = parser.parsePlan(query.sql)
    operators = list(plan_tree.operators(parsed))
    plan_checks.check_parsed(query.key, map(plan_tree.class_name, operators))
    for operator in operators:
        _check_expressions(query.key, operator)
        if plan_tree.class_name(operator) == "UnresolvedRelation":
            _check_relation(query.key, str(operator.name()))
    rows.createOrReplaceTempView(plan_checks.RECORDS)
    return session.sql(query.sql)


def _check_relation(key: str, name: str) -> None:
    if name.lower() != plan_checks.RECORDS:
        raise ConfigError.of(key, f"{key} reads {name}; write FROM {plan_checks.RECORDS}")


def _check_plan(key: str, result: DataFrame) -> None:
    plan = _java(result).queryExecution().analyzed()
    operators = list(plan_tree.operators(plan))
    plan_checks.check_operators(key, map(plan_tree.class_name, operators))
    for operator in operators:
        _check_expressions(key, operator, is_resolved=True)


def _check_expressions(key: str, operator: Any, *, is_resolved: bool = False) -> None:
    for expression in plan_tree.expressions(operator):
        is_deterministic = not is_resolved or plan_tree.is_deterministic(expression)
        plan_checks.check_expression(
            key,
            plan_tree.class_name(expression),
            str(expression.prettyName()),
            is_deterministic=is_deterministic,
        )


def _call(rows: DataFrame, query: SparkQuery, modules: PluginModuleAllowlist) -> DataFrame:
    refusal = modules.refusal(query.key, query.function)
    if refusal:
        raise ConfigError.of(query.key, refusal)
    function = load_function(query.key, query.function)
    try:
        result = function(rows)
    except (PySparkException, Py4JError):
        raise
    except Exception as error:
        kind = type(error).__name__
        raise ConfigError.of(query.key, f"{query.function} failed: {kind}: {error}") from error
    if not isinstance(result, DataFrame):
        kind = type(result).__name__
        raise ConfigError.of(
            query.key, f"{query.function} returned {kind}; it must return a DataFrame"
        )
    return result


def load_function(key: str, name: str) -> Callable[[DataFrame], object]:
    """Import `module:function`. Raises ConfigError."""
    module, _, member = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), member)
    except (ImportError, AttributeError) as error:
        raise ConfigError.of(key, f"{key} {name} cannot be loaded: {error}") from error
    if not callable(found):
        raise ConfigError.of(key, f"{key} {name} is not a function")
    function: Callable[[DataFrame], object] = found
    return function


def _java(frame: DataFrame) -> Any:
    return frame._jdf


def _java_session(session: SparkSession) -> Any:
    return session._jsparkSession


def _gateway(session: SparkSession) -> Any:
    return session.sparkContext._gateway


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
