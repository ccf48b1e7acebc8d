"""A connector, as the herder sees it: it is started with a config and says what its tasks are.

    herder ── start, task_configs, stop ──▶ Connector        (one thread of its own per connector)
    herder ◀── request_task_reconfiguration, raise_error ── ConnectorContext      (any thread)

What the words mean is Kafka Connect's. Connectors are written against this module; it knows none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration

ExpandedConfig: TypeAlias = Mapping[str, str]
"""A config in which every `${provider:path:key}` has been replaced. Holds secrets: never log it."""


class ConnectorContext(Protocol):
    """What a connector may tell the herder. Any thread may; nothing here blocks.

    Once the connector was stopped, or given up because it hung, nobody listens any more.
    """

    def request_task_reconfiguration(self) -> None:
        """Ask for a call of `task_configs`. Tasks are restarted only if their configs changed."""
        ...

    def raise_error(self, error: BaseException) -> None:
        """Make the connector FAILED, with the error as its trace. Its tasks go on."""
        ...

    def is_cancelled(self) -> bool:
        """Say whether whatever blocks should come to an end: nobody waits for it any more."""
        ...


class Connector(Protocol):
    """What plans the work. One thread of its own calls it, one method at a time.

    A method may block while it talks to clusters (`is_cancelled` says when to end it), and raises
    whatever error makes the connector FAILED; the first line of its trace is what people see.
    """

    def start(self, config: ExpandedConfig) -> None:
        """Begin to watch; called once. PAUSED and STOPPED connectors are not started."""
        ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Give a config for each task, at most `max_tasks`; called only while started.

        The same work must always give the same texts. An error is logged and the call repeated
        with growing pauses; the connector stays RUNNING meanwhile, and says so in its status.
        """
        ...

    def stop(self) -> None:
        """End what `start` began. Also called after a `start` that failed or was cancelled."""
        ...

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Refuse (OffsetsRejected) what an operator wants to write into the offsets topic.

        Called on an instance that is never started, while the connector is STOPPED. A reset comes
        as tombstones (offset None). True: the offsets were taken note of wherever else they count.
        """
        ...
