"""Which connectors run on one worker with all their tasks. Pure.

With a local Spark each worker runs its share of a source connector's tasks. A Spark cluster has the
cores of many computers, so one driver runs all tasks there: a second worker would add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkmirror.config.definition.connector_config_validation import CONNECTOR_CLASS
from sparkmirror.config.definition.java_classes import SOURCE_CONNECTOR
from sparkmirror.config.definition.plugins import find_connector
from sparkmirror.worker.spark.spark_settings import MASTER

_LOCAL = "local"


def undivided_rule(worker_master: str) -> Callable[[Mapping[str, str | None]], bool]:
    """Return whether a connector with such a config is undivided, on workers with this master."""

    def is_undivided(config: Mapping[str, str | None]) -> bool:
        plugin = find_connector((config.get(CONNECTOR_CLASS) or "").strip())
        if plugin is None or plugin.class_name != SOURCE_CONNECTOR:
            return False
        master = (config.get(MASTER) or worker_master).strip()
        return bool(master) and master != _LOCAL and not master.startswith(f"{_LOCAL}[")

    return is_undivided
