"""What a source connector's config says about transformations, for the tasks that run them.

The chain is compiled here once, so that a fault fails the connector with Java's text and no task
starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from sparkmirror.errors import ConfigError
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.converters.formats import format_key
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record_parts import stage_parts
from sparkmirror.transforms.transformation_chain import TransformationChain

_TRANSFORMS: Final = "transforms"
_PREFIXES: Final = ("transforms.", "predicates.")
_KEYS: Final = frozenset(
    {
        _TRANSFORMS,
        "predicates",
        "errors.tolerance",
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
    if not config.get(_TRANSFORMS, "").strip():
        return {}
    environment = JavaEnvironment(now_ms=time.time_ns() // 1_000_000)
    connector_transformer(config, environment)
    _reject_routes(transformation_chain(config, environment))
    return {
        key: value for key, value in config.items() if key in _KEYS or key.startswith(_PREFIXES)
    }


def _reject_routes(chain: TransformationChain) -> None:
    """Raise ConfigError for a stage that gives records another topic."""
    for stage in chain.stages:
        if stage_parts(stage).routes:
            raise ConfigError.of(
                _TRANSFORMS,
                f"{_TRANSFORMS}.{stage.alias} gives records another topic, which cannot be run yet;"
                f" remove {stage.alias} from {_TRANSFORMS}",
            )


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
