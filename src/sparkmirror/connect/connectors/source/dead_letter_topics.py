"""Which topic a flow may use for dead letters, and the creation of that topic.

A topic that the flow mirrors or writes to cannot hold dead letters: they would get between the
records of a remote topic, or be mirrored, fail again, and become letters without end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.config.definition.value_types import Props
from sparkmirror.config.plugin_module_allowlist import PLUGIN_CLASS_KEYS, is_python_class
from sparkmirror.config.tables.transform_additions import DEADLETTERQUEUE_TOPIC
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ClusterError, ConfigError, ConfigFault, MirrorError, TopicExists
from sparkmirror.mirror.topics.replication_policy import is_internal_with_any_separator
from sparkmirror.mirror.topics.routed_policy import unrouted_policy
from sparkmirror.mirror.topics.topic_selection import TopicSelection
from sparkmirror.transforms.configuration.dead_letter_and_query_faults import (
    dead_letter_and_query_faults,
)
from sparkmirror.transforms.configuration.error_settings import DeadLetterTopic, dead_letter_topic

log = logging.getLogger(__name__)

PARTITIONS: Final = 1
"""Those of a topic that is created here, as in Connect."""
RETRY_INTERVAL_S: Final = 60.0
"""The pause between two tries to create the topic."""


def transformation_faults(props: Props) -> Sequence[ConfigFault]:
    """The faults of transformations and of dead letters that the tables do not find.

    A policy or filter of the operator's own is not loaded here: the start of the connector asks it.
    """
    faults = list(dead_letter_and_query_faults(props))
    if any(is_python_class(props.get(key) or "") for key in PLUGIN_CLASS_KEYS):
        return faults
    config = {key: value for key, value in props.items() if value is not None}
    try:
        topic = dead_letter_topic(config)
        parsed = MirrorSourceConfig.parse(config) if topic else None
    except MirrorError:
        return faults  # the tables have found them
    if topic and parsed:
        refusal = dead_letter_topic_refusal(topic.name, parsed.selection)
        faults += [ConfigFault(DEADLETTERQUEUE_TOPIC, refusal)] if refusal else []
    return faults


def require_dead_letter_topic(config: MirrorSourceConfig, remotes: Mapping[str, str]) -> None:
    """Raise ConfigError if the topic for dead letters is one that the flow copies or writes to.

    `remotes` are the remote topics of those that are copied.
    """
    topic = dead_letter_topic(config.shared.originals)
    if topic is None:
        return
    refusal = dead_letter_topic_refusal(topic.name, config.selection)
    for source, remote in remotes.items():
        if remote == topic.name:
            refusal = f"{DEADLETTERQUEUE_TOPIC} {topic.name} is the remote topic of {source}"
    if refusal:
        raise ConfigError.of(DEADLETTERQUEUE_TOPIC, refusal)


def dead_letter_topic_refusal(topic: str, selection: TopicSelection) -> str:
    """Return why a topic cannot hold the dead letters of a flow; empty if it can."""
    policy, flow = selection.policy, selection.flow
    keeps_names = unrouted_policy(policy).format_remote_topic(flow.source, topic) == topic
    why = ""
    if is_internal_with_any_separator(policy, topic) or policy.is_heartbeats_topic(topic):
        why = "is an internal topic"
    elif selection.should_replicate_topic(topic):
        why = (
            f"is mirrored if {flow.source} has a topic of this name, and dead letters must not be"
            " mirrored; exclude it by topics.exclude"
        )
    elif selection.is_remote_topic(topic) and not keeps_names:
        why = f"is the name of a remote topic from {flow.source}"
    return f"{DEADLETTERQUEUE_TOPIC} {topic} {why}" if why else ""


class DeadLetterTopicCreation:
    """Creates the topic on the target if it is missing. Belongs to one thread."""

    def __init__(
        self, admin: Admin, topic: DeadLetterTopic, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._admin = admin
        self._topic = topic
        self._clock = clock
        self._next_try_at = float("-inf")
        self.problem = ""
        """Why the topic is missing, as text for operators; empty if it exists."""

    def ensure(self) -> None:
        """Create the topic if it is missing, unless it was looked for a moment ago."""
        if self._clock() < self._next_try_at:
            return
        error = self._create()
        name = self._topic.name
        self.problem = f"topic {name} for dead letters cannot be created: {error}" if error else ""
        self._next_try_at = self._clock() + RETRY_INTERVAL_S

    def _create(self) -> ClusterError | None:
        name = self._topic.name
        if name in self._admin.describe_topics([name]):
            return None
        new = NewTopic(
            name=name,
            partitions=PARTITIONS,
            replication_factor=self._topic.replication_factor,
            configs={},
        )
        failed, _ = self._admin.create_topics([new])
        error = failed.get(name)
        if error is None:
            log.info("Created topic %s for dead letters", name)
        elif isinstance(error, TopicExists):
            return None
        else:
            log.error("Unable to create topic %s for dead letters, trying again: %s", name, error)
        return error
