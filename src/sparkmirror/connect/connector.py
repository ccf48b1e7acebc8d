"""The interface of a connector: the herder starts it with a config and asks for task configs.

    herder ── start, task_configs, stop ──▶ Connector        (one thread per connector)
    herder ◀── request_task_reconfiguration, report_problem, raise_error ── ConnectorContext
                                                                     (any thread)

The terms are Kafka Connect's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from sparkmirror.mirror.connect_topics.offset_alterations import OffsetAlteration

ExpandedConfig: TypeAlias = Mapping[str, str]
"""A config with every `${provider:path:key}` replaced. Contains secrets: never log it."""


class ConnectorContext(Protocol):
    """How a connector calls the herder. Any thread may call; no method blocks.

    After the connector was stopped, or abandoned because it hung, calls have no effect.
    """

    def request_task_reconfiguration(self) -> None:
        """Request a call of `task_configs`. Tasks restart only if their configs changed."""
        ...

    def report_problem(self, text: str) -> None:
        """Show what does not work now as the trace of the RUNNING connector.

        The text says where, why, and what to do. The same text again changes nothing; an empty
        text means that the problem is solved.
        """
        ...

    def raise_error(self, error: BaseException) -> None:
        """Make the connector FAILED, with the error as trace. Its tasks keep running."""
        ...

    def is_cancelled(self) -> bool:
        """Return whether a blocking call should end: its result is no longer needed."""
        ...


class Connector(Protocol):
    """Plans the tasks. One thread calls it, one method at a time.

    A method may block while it waits for a cluster (`is_cancelled` says when to end). An error that
    it raises makes the connector FAILED; operators see the first line of its trace.
    """

    def start(self, config: ExpandedConfig) -> None:
        """Start; called once. PAUSED and STOPPED connectors are not started."""
        ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return one config per task, at most `max_tasks`. Called only while started.

        The same work must always give the same configs. Raises TasksNotPlanned while that work is
        not known: the tasks stay as they are, and the connector requests the call again as soon as
        it can answer. After any other error the herder repeats the call with growing pauses; the
        status stays RUNNING and shows the error.
        """
        ...

    def stop(self) -> None:
        """Stop. Also called after a `start` that failed or was cancelled."""
        ...

    def alter_offsets(
        self, config: ExpandedConfig, alterations: Sequence[OffsetAlteration]
    ) -> bool:
        """Validate offsets that an operator writes to the offsets topic. Raises OffsetsRejected.

        Called on an instance that is never started, while the connector is STOPPED. A reset passes
        tombstones (offset None). Return True if no other system keeps offsets of this connector.
        """
        ...
