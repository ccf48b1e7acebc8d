"""The transformations of a source connector that are valid in Connect but cannot be run here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.config.tables.transform_additions import DEADLETTERQUEUE_TOPIC
from sparkmirror.errors import ConfigError, ConfigFault, TransformError
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.spark_query import spark_query_faults
from sparkmirror.transforms.static_route import record_routers

_ANY_TIME: Final = JavaEnvironment(now_ms=0)
"""What a stage reads and writes does not depend on the clock."""


def unsupported_transformations(props: Props) -> Sequence[ConfigFault]:
    """The faults of what cannot be run. Empty if the tables have found faults in the config.

    What Java reports only when a task starts is left to the start.
    """
    faults = [*_deadletterqueue_faults(props), *spark_query_faults(props)]
    try:
        chain = transformation_chain(props, _ANY_TIME)
    except (ConfigError, TransformError):
        return faults
    return faults + [
        ConfigFault(
            f"transforms.{stage.alias}.type",
            f"The transformation {stage.alias} may send records of one topic to different topics, "
            "which is not supported yet: a RegexRouter may have no predicate but TopicNameMatches, "
            "and TimestampRouter cannot be used",
        )
        for stage in record_routers(chain)
    ]


def _deadletterqueue_faults(props: Props) -> Sequence[ConfigFault]:
    if not trim(props.get(DEADLETTERQUEUE_TOPIC) or ""):
        return ()
    text = f"{DEADLETTERQUEUE_TOPIC} is not supported: leave it out, then such records are dropped"
    return (ConfigFault(DEADLETTERQUEUE_TOPIC, text),)
