"""What a source connector's config says about transformations, for the tasks that run them.

The chain is compiled here once, so that a fault fails the connector with Java's text and no task
starts. A chain whose stages only name the topic is no work of tasks: they copy batches unopened.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from sparkmirror.errors import ConfigError
from sparkmirror.transforms.configuration.connector_transformer import record_transformer
from sparkmirror.transforms.configuration.dead_letter_and_query_faults import (
    dead_letter_and_query_faults,
)
from sparkmirror.transforms.configuration.error_settings import LOG_ENABLE, LOG_INCLUDE_MESSAGES
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.converters.formats import format_key
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.spark_query import spark_query, spark_query_settings
from sparkmirror.transforms.static_route import record_routers, without_routing

_TRANSFORMS: Final = "transforms"
_DEAD_LETTERS: Final = "sparkmirror.errors.deadletterqueue."
_PREFIXES: Final = ("transforms.", "predicates.", _DEAD_LETTERS)
_REPORTING_KEYS: Final = frozenset({LOG_ENABLE, LOG_INCLUDE_MESSAGES})
_KEYS: Final = frozenset(
    {
        _TRANSFORMS,
        "predicates",
        "errors.tolerance",
        *_REPORTING_KEYS,
        *(format_key(part) for part in ("key", "value", "header")),
    }
)
_LOCAL_TIME: Final = Path("/etc/localtime")
_ZONES: Final = "zoneinfo/"
UTC_NAME: Final = "UTC"


def transform_settings(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the keys that tasks need; none if they copy records unchanged.

    Raises ConfigError for faults that Java's validation reports, and TransformError for those that
    it reports when a task starts.
    """
    has_query = spark_query(config) is not None
    if not has_query and not config.get(_TRANSFORMS, "").strip():
        return {}
    faults = dead_letter_and_query_faults(config)
    if faults:
        raise ConfigError(faults)
    if has_query:
        keys: frozenset[str] = _REPORTING_KEYS
        prefixes: tuple[str, ...] = (_DEAD_LETTERS,)
        if config.get(_TRANSFORMS, "").strip():  # they name the topics that the query computes
            keys, prefixes = _REPORTING_KEYS | {_TRANSFORMS, "predicates"}, _PREFIXES
        beside = {
            key: value for key, value in config.items() if key in keys or key.startswith(prefixes)
        }
        return {**spark_query_settings(config), **beside}
    environment = JavaEnvironment(now_ms=time.time_ns() // 1_000_000)
    record_transformer(config, environment)
    if not without_routing(transformation_chain(config, environment)).stages:
        return {}
    return {
        key: value for key, value in config.items() if key in _KEYS or key.startswith(_PREFIXES)
    }


def routes_records(transforms: Mapping[str, str]) -> bool:
    """Whether what `transform_settings` returned may send records of one topic to different topics.

    Such records are copied in transactions: their order on the way says nothing about a position.
    """
    if not transforms:
        return False
    return bool(record_routers(transformation_chain(transforms, JavaEnvironment(now_ms=0))))


def default_zone_name(
    environment: Mapping[str, str] = os.environ, local_time: Path = _LOCAL_TIME
) -> str:
    """Return the time zone of this worker, as Java finds it: TZ, the computer's zone, or UTC."""
    named = environment.get("TZ", "").removeprefix(":")
    if not named and _ZONES in str(local_time.resolve()):
        named = str(local_time.resolve()).rpartition(_ZONES)[2]
    try:
        return UTC_NAME if named in ("", "Etc/UTC") else ZoneInfo(named).key
    except (ValueError, LookupError, OSError):
        return UTC_NAME
