"""Connect's three topics as a worker's config asks for them: names, sizes, settings.

    <kind>.storage.topic                 must be said
    <kind>.storage.replication.factor    3; -1 leaves it to the brokers
    <kind>.storage.partitions            offsets 25, statuses 5; configs always have 1
    <kind>.storage.<any topic setting>   goes to the topic when it is created

Compaction is not a choice: another cleanup policy is ignored with a warning, and so is a number of
partitions for the configs. Knows nothing of clusters.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from sparkmirror.config.tables.internal_topics import INTERNAL_TOPICS

log = logging.getLogger(__name__)

CLEANUP_POLICY = "cleanup.policy"
COMPACT = "compact"
_TOPIC_CREATION_KEYS = ("topic", "partitions", "replication.factor")


class StorageKind(Enum):
    """What is stored: the beginning of its keys, and Connect's words for it."""

    CONFIGS = ("config.storage.", "connector configurations")
    OFFSETS = ("offset.storage.", "source connector offsets")
    STATUSES = ("status.storage.", "connector and task statuses")

    @property
    def prefix(self) -> str:
        """How its keys begin."""
        return self.value[0]

    @property
    def purpose(self) -> str:
        """What it holds, as messages say it."""
        return self.value[1]

    @property
    def topic_key(self) -> str:
        """The key that names its topic."""
        return f"{self.prefix}topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTopic:
    """One topic as it is wanted."""

    kind: StorageKind
    name: str
    partitions: int
    replication_factor: int
    extra_configs: Mapping[str, str] = field(default_factory=dict)

    def configs(self) -> dict[str, str]:
        """All settings for its creation."""
        return {**self.extra_configs, CLEANUP_POLICY: COMPACT}


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTopics:
    """The three topics of a worker group."""

    configs: StorageTopic
    offsets: StorageTopic
    statuses: StorageTopic

    @classmethod
    def from_worker_config(cls, worker: Mapping[str, str]) -> Self:
        """Read a worker's config. ConfigError lists what is missing or wrong."""
        values = INTERNAL_TOPICS.parse(worker)

        def topic(storage: StorageKind) -> StorageTopic:
            def number(name: str, default: int) -> int:
                value = values.get(f"{storage.prefix}{name}", default)
                assert isinstance(value, int)
                return value

            return StorageTopic(
                kind=storage,
                name=str(values[storage.topic_key]),
                partitions=number("partitions", 1),
                replication_factor=number("replication.factor", -1),
                extra_configs=_extra_configs(worker, storage),
            )

        return cls(
            configs=topic(StorageKind.CONFIGS),
            offsets=topic(StorageKind.OFFSETS),
            statuses=topic(StorageKind.STATUSES),
        )


def _extra_configs(worker: Mapping[str, str], storage: StorageKind) -> dict[str, str]:
    prefix = storage.prefix
    said = {key[len(prefix) :]: value for key, value in worker.items() if key.startswith(prefix)}
    policy = said.pop(CLEANUP_POLICY, None)
    if policy is not None:
        log.warning(
            "Ignoring '%s%s=%s' setting, since compaction is always used",
            prefix,
            CLEANUP_POLICY,
            policy,
        )
    if storage is StorageKind.CONFIGS and "partitions" in said:
        log.warning(
            "Ignoring '%spartitions=%s' setting, since config topic partition count is always 1",
            prefix,
            said["partitions"],
        )
    return {key: value for key, value in said.items() if key not in _TOPIC_CREATION_KEYS}
