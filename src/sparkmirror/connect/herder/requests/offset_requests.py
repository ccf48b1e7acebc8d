"""Requests for a connector's offsets: list, alter, reset. The texts are Connect's.

Offsets change only while the connector is STOPPED and has no tasks: otherwise a task would
overwrite them. With exactly-once support, older producers are fenced first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final

from sparkmirror.connect.herder.herder import ConnectorOffset
from sparkmirror.connect.runtime.connector_registry import lookup_connector
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.errors import (
    BadRequest,
    ClusterError,
    MirrorError,
    NotFound,
    RequestError,
    RequestFailed,
)
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset, to_java_offset
from sparkmirror.mirror.connect_topics.offset_alterations import (
    OffsetAlteration,
    normalize_alterations,
)
from sparkmirror.store.store_api import (
    READ_TO_END_TIMEOUT_S,
    ConfigBackingStore,
    OffsetBackingStore,
)

log = logging.getLogger(__name__)

REFRESH_TIMEOUT_S: Final = 2.0
"""How long a request for offsets waits for those that other processes have just written."""
_SUCCESS: Final = "The offsets for this connector have been {} successfully"
_PARTIAL_SUCCESS: Final = (
    "The Connect framework-managed offsets for this connector have been {} successfully. However, "
    "if this connector manages offsets externally, they will need to be manually {} in the system "
    "that the connector uses."
)


class _NoOpContext:
    """The context of a connector that only validates offsets and never starts."""

    def __init__(self, name: str) -> None:
        self._name = name

    def request_task_reconfiguration(self) -> None:
        """No-op: the connector has no tasks."""

    def report_problem(self, text: str) -> None:
        """No-op: the connector does not run."""

    def raise_error(self, error: BaseException) -> None:
        """Log the error: no status can show it."""
        log.warning("Connector %s, which does not run, raised an error: %s", self._name, error)

    def is_cancelled(self) -> bool:
        return False


class OffsetRequests:
    """Reads and writes the offsets of connectors."""

    def __init__(
        self,
        configs: ConfigBackingStore,
        offsets: OffsetBackingStore,
        run_context: RunContext,
    ) -> None:
        self._configs = configs
        self._offsets = offsets
        self._run_context = run_context

    def connector_offsets(self, name: str) -> Sequence[ConnectorOffset]:
        """Return all stored offsets of a connector. Any thread may call. Raises RequestError.

        While the offsets topic cannot be read, they are what the store has read last.
        """
        if not self._offsets.problem():
            self._refresh(REFRESH_TIMEOUT_S)
        return [
            ConnectorOffset(partition=stored.partition, offset=shown)
            for stored in self._offsets.connector_offsets(name)
            if (shown := to_java_offset(stored.offset))
        ]

    def alter(self, name: str, offsets: Sequence[ConnectorOffset]) -> str:
        """Write offsets; null removes one. Requires the task thread. Raises RequestError."""
        if not offsets:
            raise BadRequest(
                "Partitions / offsets need to be provided for an alter offsets request"
            )
        config = self._require_stopped(name)
        alterations = normalize_alterations(
            OffsetAlteration(one.partition, one.offset) for one in offsets
        )
        return self._write(name, config, alterations, "altered")

    def reset(self, name: str) -> str:
        """Remove all offsets of a connector. Requires the task thread. Raises RequestError."""
        config = self._require_stopped(name)
        self._offsets.refresh()
        tombstones = [
            OffsetAlteration(s.partition, None) for s in self._offsets.connector_offsets(name)
        ]
        return self._write(name, config, tombstones, "reset")

    def _write(
        self,
        name: str,
        config: ConfigProperties,
        alterations: Sequence[OffsetAlteration],
        done: str,
    ) -> str:
        expanded = self._run_context.transformer.transform(config).values
        connector = lookup_connector(self._run_context.registry, expanded).connector(
            name, _NoOpContext(name)
        )
        is_complete = connector.alter_offsets(expanded, alterations)
        if self._run_context.fence_zombies is not None:
            self._run_context.fence_zombies(name)
        self._offsets.save(
            StoredOffset(connector=name, partition=partition, offset=offset)
            for partition, offset in alterations
        )
        self._refresh(READ_TO_END_TIMEOUT_S)  # the next request for the offsets returns these
        return _SUCCESS.format(done) if is_complete else _PARTIAL_SUCCESS.format(done, done)

    def _refresh(self, timeout_s: float) -> None:
        """Read the offsets topic to its end, unless its cluster is not available."""
        try:
            self._offsets.refresh(timeout_s)
        except ClusterError as error:
            if not error.retriable:
                raise RequestFailed(str(error)) from error
            log.info("The offsets topic was not read to its end: %s", error)

    def _require_config(self, name: str) -> ConfigProperties:
        config = self._configs.snapshot().connector_config(name)
        if config is None:
            raise NotFound(f"Connector {name} not found")
        return config

    def _require_stopped(self, name: str) -> ConfigProperties:
        config = self._require_config(name)
        state = self._configs.snapshot()
        if state.target_state(name) is not TargetState.STOPPED or state.task_count(name):
            raise BadRequest(
                "Connectors must be in the STOPPED state before their offsets can be modified. "
                "This can be done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint"
            )
        return config


def complete(future: Future[str], change: Callable[[], str]) -> None:
    """Run a change of offsets and give its result or its error to the future."""
    try:
        future.set_result(change())
    except MirrorError as error:
        future.set_exception(_as_request_error(error))
    except Exception as error:  # noqa: BLE001  it is raised in the calling thread
        future.set_exception(error)


def _as_request_error(error: MirrorError) -> RequestError:
    return error if isinstance(error, RequestError) else RequestFailed(str(error))
