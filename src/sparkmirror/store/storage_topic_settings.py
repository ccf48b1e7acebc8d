"""Connect's three internal topics as a worker's config defines them: names, sizes, topic configs.

    <kind>.storage.topic                 required
    <kind>.storage.replication.factor    default 3; -1 is the brokers' default
    <kind>.storage.partitions            default 25 for offsets, 5 for statuses; configs always 1
    <kind>.storage.<topic config>        set when the topic is created

The topics are always compacted: another cleanup policy is ignored with a warning, and so is a
number of partitions for the configs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from sparkmirror.config.tables.storage_topics import INTERNAL_TOPICS

log = logging.getLogger(__name__)

CLEANUP_POLICY = "cleanup.policy"
COMPACT = "compact"
_TOPIC_CREATION_KEYS = ("topic", "partitions", "replication.factor")


class StorageKind(Enum):
    """What a topic stores: the prefix of its config keys, and Connect's name for it in messages."""

    CONFIGS = ("config.storage.", "connector configurations")
    OFFSETS = ("offset.storage.", "source connector offsets")
    STATUSES = ("status.storage.", "connector and task statuses")

    @property
    def prefix(self) -> str:
        """The prefix of its config keys."""
        return self.value[0]

    @property
    def purpose(self) -> str:
        """What the topic holds, in Connect's words."""
        return self.value[1]

    @property
    def topic_key(self) -> str:
        """The config key of the topic's name."""
        return f"{self.prefix}topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTopic:
    """The definition of one topic."""

    kind: StorageKind
    name: str
    partitions: int
    replication_factor: int
    extra_configs: Mapping[str, str] = field(default_factory=dict)

    def configs(self) -> dict[str, str]:
        """Return all topic configs for its creation."""
        return {**self.extra_configs, CLEANUP_POLICY: COMPACT}


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTopics:
    """The three topics of a worker group."""

    configs: StorageTopic
    offsets: StorageTopic
    statuses: StorageTopic

    @classmethod
    def from_worker_config(cls, worker: Mapping[str, str]) -> Self:
        """Read a worker's config. Raises ConfigError with all missing and invalid keys."""
        values = INTERNAL_TOPICS.parse(worker)

        def topic(kind: StorageKind) -> StorageTopic:
            def number(name: str, default: int) -> int:
                value = values.get(f"{kind.prefix}{name}", default)
                assert isinstance(value, int)
                return value

            return StorageTopic(
                kind=kind,
                name=str(values[kind.topic_key]),
                partitions=number("partitions", 1),
                replication_factor=number("replication.factor", -1),
                extra_configs=_extra_configs(worker, kind),
            )

        return cls(
            configs=topic(StorageKind.CONFIGS),
            offsets=topic(StorageKind.OFFSETS),
            statuses=topic(StorageKind.STATUSES),
        )


def _extra_configs(worker: Mapping[str, str], kind: StorageKind) -> dict[str, str]:
    prefix = kind.prefix
    given = {key[len(prefix) :]: value for key, value in worker.items() if key.startswith(prefix)}
    policy = given.pop(CLEANUP_POLICY, None)
    if policy is not None:
        log.warning(
            "Ignoring '%s%s=%s' setting, since compaction is always used",
            prefix,
            CLEANUP_POLICY,
            policy,
        )
    if kind is StorageKind.CONFIGS and "partitions" in given:
        log.warning(
            "Ignoring '%spartitions=%s' setting, since config topic partition count is always 1",
            prefix,
            given["partitions"],
        )
    return {key: value for key, value in given.items() if key not in _TOPIC_CREATION_KEYS}
