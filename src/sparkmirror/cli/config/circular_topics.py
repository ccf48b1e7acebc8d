"""Topics that a flow and its reverse flow copy to each other without end. Connects to nothing.

The topics of the clusters are not known. Names are made up from `topics` of both flows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sparkmirror.config.definition.value_types import split_list
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.topics.topic_selection import TopicSelection

_LITERAL: Final = re.compile(r"[A-Za-z0-9_-]*")
_ANY_TOPIC: Final = "topic"
_ROUNDS: Final = 2


def circular_topic(there: Mapping[str, str], back: Mapping[str, str]) -> str:
    """Return a topic that goes round between two flows; empty if none is found.

    Takes the configs of the two source connectors.
    """
    try:
        flows = [MirrorSourceConfig.parse(config).selection for config in (there, back)]
    except ConfigError:
        return ""  # The checks of the connectors report it.
    names = dict.fromkeys([*_topic_names(there), *_topic_names(back), _ANY_TOPIC])
    return next((name for name in names if _goes_round(flows * _ROUNDS, name)), "")


def _topic_names(config: Mapping[str, str]) -> Iterator[str]:
    """Yield how the items of `topics` begin."""
    for item in split_list(config.get("topics", "")):
        begin = _LITERAL.match(item)
        if begin and begin[0]:
            yield begin[0]


def _goes_round(flows: list[TopicSelection], topic: str) -> bool:
    for selection in flows:
        if not selection.should_replicate_topic(topic):
            return False
        topic = selection.policy.format_remote_topic(selection.flow.source, topic)
    return True
