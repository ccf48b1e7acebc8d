"""What a connector's config says about records as rows of Spark: a query, or a function.

The query is checked and evaluated by Spark itself (`engine.spark.query`). Here is what can be said
without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.config.plugin_module_allowlist import TRANSFORM_FUNCTION, is_python_class
from sparkmirror.config.tables.transform_additions import ERRORS_TOLERANCE, TRANSFORM_SQL
from sparkmirror.errors import ConfigError, ConfigFault, TransformError
from sparkmirror.transforms.configuration.connector_transformer import tolerates_errors
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.static_route import StaticRoute, remote_topic_route, without_routing

_ANY_TIME: Final = JavaEnvironment(now_ms=0)
"""Which stages there are does not depend on the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkQuery:
    """The query of a connector: SQL, or a function `module:function` of a DataFrame."""

    sql: str = ""
    function: str = ""
    tolerates_errors: bool = False
    """Whether records that fail are dropped."""

    @property
    def key(self) -> str:
        """The config key that has the query."""
        return TRANSFORM_SQL if self.sql else TRANSFORM_FUNCTION


def spark_query(props: Props) -> SparkQuery | None:
    """The query of a config; None if it has none."""
    sql, function = _texts(props)
    if not sql and not function:
        return None
    return SparkQuery(sql=sql, function=function, tolerates_errors=tolerates_errors(props))


def spark_query_settings(props: Mapping[str, str]) -> Mapping[str, str]:
    """The keys of a query that tasks need; none without a query."""
    keys = (TRANSFORM_SQL, TRANSFORM_FUNCTION, ERRORS_TOLERANCE)
    return {key: trim(props[key]) for key in keys if trim(props.get(key) or "")}


def query_route(props: Mapping[str, str]) -> StaticRoute:
    """The routes by the name of the topic that stand beside a query: it comes before them."""
    return remote_topic_route(transformation_chain(props, _ANY_TIME))


def spark_query_faults(props: Props) -> Sequence[ConfigFault]:
    """What is wrong with the keys of a query, as far as that can be said without Spark."""
    sql, function = _texts(props)
    faults = []
    if sql and function:
        text = f"{TRANSFORM_SQL} and {TRANSFORM_FUNCTION} are both set; leave one of them out"
        faults.append(ConfigFault(TRANSFORM_FUNCTION, text))
    if function and not is_python_class(function):
        text = (
            f"Invalid value {function} for configuration {TRANSFORM_FUNCTION}: write it as"
            " module:function"
        )
        faults.append(ConfigFault(TRANSFORM_FUNCTION, text))
    if (sql or function) and _has_record_stages(props):
        key = TRANSFORM_SQL if sql else TRANSFORM_FUNCTION
        text = (
            f"{key} cannot be combined with transforms that do more than name topics; express them"
            " in the query, or leave one of both out"
        )
        faults.append(ConfigFault(key, text))
    return faults


def _texts(props: Props) -> tuple[str, str]:
    return trim(props.get(TRANSFORM_SQL) or ""), trim(props.get(TRANSFORM_FUNCTION) or "")


def _has_record_stages(props: Props) -> bool:
    try:
        return bool(without_routing(transformation_chain(props, _ANY_TIME)).stages)
    except (ConfigError, TransformError):
        return False  # the tables report it
