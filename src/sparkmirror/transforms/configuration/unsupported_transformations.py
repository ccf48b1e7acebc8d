"""The transformations of a source connector that are valid in Connect but cannot be run here."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.config.tables.transform_additions import DEADLETTERQUEUE_TOPIC
from sparkmirror.errors import ConfigFault


def unsupported_transformations(props: Props) -> Sequence[ConfigFault]:
    """The faults of what cannot be run. Empty if the tables have found faults in the config.

    What Java reports only when a task starts is left to the start.
    """
    return _deadletterqueue_faults(props)


def _deadletterqueue_faults(props: Props) -> Sequence[ConfigFault]:
    if not trim(props.get(DEADLETTERQUEUE_TOPIC) or ""):
        return ()
    text = f"{DEADLETTERQUEUE_TOPIC} is not supported: leave it out, then such records are dropped"
    return (ConfigFault(DEADLETTERQUEUE_TOPIC, text),)
