"""The keys of dead letters and queries with which a source connector cannot be run, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.config.tables.transform_additions import DEADLETTERQUEUE_TOPIC, ERRORS_TOLERANCE
from sparkmirror.errors import ConfigError, ConfigFault, TransformError
from sparkmirror.model import is_topic_name
from sparkmirror.transforms.configuration.connector_transformer import tolerates_errors
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.spark_query import spark_query_faults
from sparkmirror.transforms.static_route import record_routers

_ANY_TIME: Final = JavaEnvironment(now_ms=0)
"""What a stage reads and writes does not depend on the clock."""


def dead_letter_and_query_faults(props: Props) -> Sequence[ConfigFault]:
    """The faults of the topic for dead letters and of the query, as far as Spark is not needed.

    The tables find the faults of the transformations themselves.
    """
    return [*_deadletterqueue_faults(props), *spark_query_faults(props)]


def _deadletterqueue_faults(props: Props) -> Sequence[ConfigFault]:
    name = trim(props.get(DEADLETTERQUEUE_TOPIC) or "")
    if not name:
        return ()
    if not tolerates_errors(props):
        text = "a record that fails holds its partition and is not passed over without it"
        fault = f"{DEADLETTERQUEUE_TOPIC} needs {ERRORS_TOLERANCE}=all: {text}"
        return (ConfigFault(DEADLETTERQUEUE_TOPIC, fault),)
    if not is_topic_name(name):
        fault = (
            f"{DEADLETTERQUEUE_TOPIC} {name!r} is no name of a topic: at most 249 letters, digits,"
            " dots, hyphens and underscores"
        )
        return (ConfigFault(DEADLETTERQUEUE_TOPIC, fault),)
    if routers := _record_routers(props):
        fault = (
            f"{DEADLETTERQUEUE_TOPIC} is not supported with {', '.join(routers)}, which may send"
            " records of one topic to different topics: leave one of them out"
        )
        return (ConfigFault(DEADLETTERQUEUE_TOPIC, fault),)
    return ()


def _record_routers(props: Props) -> list[str]:
    """The aliases of routers that look at each record; none if the chain has faults."""
    config = {key: value for key, value in props.items() if value is not None}
    try:
        chain = transformation_chain(config, _ANY_TIME)
    except (ConfigError, TransformError):
        return []
    return [stage.alias for stage in record_routers(chain)]
