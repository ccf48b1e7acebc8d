"""Requests about a connector's offsets: show, alter, reset. The texts are Connect's.

Offsets are changed only while the connector is STOPPED and has no tasks: otherwise a task would
write its own over them. With exactly-once support, older producers are fenced first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from sparkmirror.connect.herding import Offsets
from sparkmirror.connect.kinds import kind_of
from sparkmirror.connect.place import Means
from sparkmirror.errors import BadRequest, NotFound
from sparkmirror.mirror.connect_configs import Properties, TargetState
from sparkmirror.mirror.connect_offsets import StoredOffset, as_java_writes
from sparkmirror.mirror.offset_alterations import Alteration, normalise
from sparkmirror.store.keeping import ConfigStore, OffsetStore

log = logging.getLogger(__name__)

_DONE: Final = "The offsets for this connector have been {} successfully"
_HALF_DONE: Final = (
    "The Connect framework-managed offsets for this connector have been {} successfully. However, "
    "if this connector manages offsets externally, they will need to be manually {} in the system "
    "that the connector uses."
)


class _NobodyListens:
    """The context of a connector that is asked about offsets and never started."""

    def request_task_reconfiguration(self) -> None:
        """It has no tasks."""

    def raise_error(self, error: BaseException) -> None:
        """Nobody would see it in a status."""
        log.warning("A connector that does not run raised an error: %s", error)

    def is_cancelled(self) -> bool:
        return False


class OffsetRequests:
    """Reads and writes offsets for people."""

    def __init__(
        self,
        configs: ConfigStore,
        offsets: OffsetStore,
        means: Means,
    ) -> None:
        self._configs = configs
        self._offsets = offsets
        self._means = means

    def show(self, name: str) -> Sequence[Offsets]:
        """List all that is stored for a connector. Any thread may ask."""
        self._known(name)
        self._offsets.refresh()
        return [
            Offsets(partition=stored.partition, offset=shown)
            for stored in self._offsets.of_connector(name)
            if (shown := as_java_writes(stored.offset))
        ]

    def alter(self, name: str, offsets: Sequence[Offsets]) -> str:
        """Write offsets; a null one is forgotten."""
        if not offsets:
            raise BadRequest(
                "Partitions / offsets need to be provided for an alter offsets request"
            )
        config = self._stopped(name)
        alterations = normalise(Alteration(one.partition, one.offset) for one in offsets)
        return self._write(name, config, alterations, "altered")

    def reset(self, name: str) -> str:
        """Forget all offsets of a connector."""
        config = self._stopped(name)
        self._offsets.refresh()
        forgotten = [Alteration(s.partition, None) for s in self._offsets.of_connector(name)]
        return self._write(name, config, forgotten, "reset")

    def _write(
        self, name: str, config: Properties, alterations: Sequence[Alteration], done: str
    ) -> str:
        expanded = self._means.expander.expand(config).values
        connector = kind_of(self._means.kinds, expanded).connector(name, _NobodyListens())
        everywhere = connector.alter_offsets(expanded, alterations)
        if self._means.fence is not None:
            self._means.fence(name)
        self._offsets.save(
            StoredOffset(connector=name, partition=partition, offset=offset)
            for partition, offset in alterations
        )
        return _DONE.format(done) if everywhere else _HALF_DONE.format(done, done)

    def _known(self, name: str) -> Properties:
        config = self._configs.snapshot().connector(name)
        if config is None:
            raise NotFound(f"Connector {name} not found")
        return config

    def _stopped(self, name: str) -> Properties:
        config = self._known(name)
        state = self._configs.snapshot()
        if state.target_state(name) is not TargetState.STOPPED or state.task_count(name):
            raise BadRequest(
                "Connectors must be in the STOPPED state before their offsets can be modified. "
                "This can be done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint"
            )
        return config
