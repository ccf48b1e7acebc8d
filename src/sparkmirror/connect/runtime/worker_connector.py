"""One connector on this worker: brings the instance that runs to what is wanted.

    herder's thread ── want, plan ──▶ lane ──▶ Connector.start, task_configs, stop
    herder's thread ◀── ConnectorEvents (posted, in order) ── lane, or the connector's own threads

Every start makes a new instance; one that was stopped is deaf and dumb. A wish that makes the one
under way pointless cancels it at once, so that nobody waits for a cluster that is away.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.connect.connector import Connector
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer, TransformedConfig
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry, lookup_connector
from sparkmirror.connect.runtime.serial_executor import SerialExecutor
from sparkmirror.connect.runtime.stack_traces import TooManyTasks, format_trace
from sparkmirror.connect.runtime.tasks_max import check_tasks_max, tasks_max
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredConnector:
    """What a connector should be."""

    properties: ConfigProperties
    state: TargetState
    restart_count: int
    """Another turn means: begin anew, even with the same properties."""
    is_restart: bool = False
    """Whether to say RESTARTING before it begins anew."""

    def same_instance(self, other: DesiredConnector) -> bool:
        """Say whether an instance made for the one serves the other too."""
        return self.restart_count == other.restart_count and self.properties == other.properties


class ConnectorEvents(Protocol):
    """What becomes of connectors. Any thread calls; nothing blocks."""

    def on_target_state_reached(
        self, name: str, wish: DesiredConnector, ttl_ms: int | None
    ) -> None:
        """It has become what was wished, with values that hold for so long (None: for ever)."""
        ...

    def on_connector_failed(self, name: str, told: str) -> None:
        """It could not, or it raised an error later; `told` is the trace."""
        ...

    def on_connector_stopped(self, name: str, *, restarting: bool) -> None:
        """The instance is no more; another one may follow."""
        ...

    def on_connector_removed(self, name: str) -> None:
        """It is no more, and nothing is to follow."""
        ...

    def on_task_configs_generated(
        self, name: str, properties: ConfigProperties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        """It said what its tasks are, under these properties."""
        ...

    def on_task_configs_failed(self, name: str, told: str) -> None:
        """It could not say what its tasks are; it may be asked again."""
        ...

    def on_reconfiguration_requested(self, name: str) -> None:
        """It wants to be asked what its tasks are."""
        ...


class _InstanceContext:
    """What one instance tells the herder, until it is cancelled."""

    def __init__(self, name: str, events: ConnectorEvents) -> None:
        self._name = name
        self._events = events
        self._is_cancelled = False
        self.secrets: frozenset[str] = frozenset()

    def request_task_reconfiguration(self) -> None:
        if not self._is_cancelled:
            self._events.on_reconfiguration_requested(self._name)

    def raise_error(self, error: BaseException) -> None:
        if not self._is_cancelled:
            log.error("Connector raised an error: %s", format_trace(error, self.secrets))
            self._events.on_connector_failed(self._name, format_trace(error, self.secrets))

    def is_cancelled(self) -> bool:
        return self._is_cancelled

    def cancel(self) -> None:
        """From now on nobody listens."""
        self._is_cancelled = True


class WorkerConnector:
    """One connector's thread. Public methods are for the herder's thread."""

    def __init__(
        self,
        name: str,
        kinds: ConnectorRegistry,
        expander: ConfigTransformer,
        events: ConnectorEvents,
    ) -> None:
        self.name = name
        self._registry = kinds
        self._transformer = expander
        self._events = events
        self._executor = SerialExecutor(f"connector-thread-{name}", connector=name, scope="worker")
        self._desired: DesiredConnector | None = None
        self._last_request = 0
        self._context = _InstanceContext(name, events)
        self._is_abandoned = False
        # What follows belongs to the lane.
        self._released = 0
        self._applied: DesiredConnector | None = None
        self._config: TransformedConfig | None = None
        self._connector: Connector | None = None

    def transition_to(self, wish: DesiredConnector | None) -> int:
        """Have it so; returns a number for `has_let_go`. None ends the run."""
        before, self._desired = self._desired, wish
        if before is not None and _must_stop(before, wish):
            self._context.cancel()
        self._last_request += 1
        number = self._last_request
        self._executor.submit(lambda: self._apply(wish, number))
        if wish is None:
            self._executor.close()
        return number

    def request_task_configs(self) -> None:
        """Ask what its tasks are."""
        self._executor.submit(self._generate_task_configs)

    def has_released(self, number: int) -> bool:
        """Say whether what ran before that wish has come to its end."""
        return self._released >= number

    def abandon(self) -> None:
        """Leave the thread, which hangs, to itself. If it ever goes on, it cleans up and ends."""
        self._is_abandoned = True
        self._context.cancel()
        self._executor.abandon()

    def join(self, within_s: float) -> bool:
        """Wait for the end of the thread; say whether it came."""
        return self._executor.join(within_s)

    # -- the lane --------------------------------------------------------------------------------

    def _apply(self, wish: DesiredConnector | None, number: int) -> None:
        before, self._applied = self._applied, wish
        anew = before is None or wish is None or not wish.same_instance(before)
        if before is not None and _must_stop(before, wish):
            self._stop()
        self._released = number
        if before is not None and anew:
            restarting = wish is not None and wish.is_restart
            self._events.on_connector_stopped(self.name, restarting=restarting)
        if wish is None:
            self._events.on_connector_removed(self.name)
        elif anew or before is None or before.state is not wish.state:
            self._enter_state(wish)
        if self._is_abandoned:
            self._stop()

    def _enter_state(self, wish: DesiredConnector) -> None:
        context = self._context = _InstanceContext(self.name, self._events)
        if self._desired is not wish and (self._desired is None or _must_stop(wish, self._desired)):
            context.cancel()  # it was overtaken while it waited for its turn
        try:
            if wish.state is TargetState.STARTED:
                self._start(wish, context)
        except Exception as error:  # noqa: BLE001  whatever it is, it makes the connector FAILED
            told, is_wanted = format_trace(error, context.secrets), not context.is_cancelled()
            self._stop()
            if is_wanted:
                log.error("Error while starting connector %s: %s", self.name, told)
                self._events.on_connector_failed(self.name, told)
        else:
            if not context.is_cancelled():
                ttl_ms = None if self._config is None else self._config.ttl_ms
                self._events.on_target_state_reached(self.name, wish, ttl_ms)

    def _start(self, wish: DesiredConnector, context: _InstanceContext) -> None:
        log.info("Starting connector %s", self.name)
        self._config = self._transformer.transform(wish.properties)
        context.secrets = self._config.secrets
        kind = lookup_connector(self._registry, self._config.values)
        self._connector = kind.connector(self.name, context)
        self._connector.start(self._config.values)

    def _stop(self) -> None:
        connector, self._connector = self._connector, None
        if connector is None:
            return
        self._context.cancel()
        log.info("Stopping connector %s", self.name)
        try:
            connector.stop()
        except Exception as error:  # noqa: BLE001  it is being thrown away
            told = format_trace(error, self._context.secrets)
            log.error("Error while shutting down connector %s: %s", self.name, told)

    def _generate_task_configs(self) -> None:
        context = self._context
        if self._connector is None or self._applied is None or self._config is None:
            return
        config = self._config.values
        try:
            tasks = self._connector.task_configs(tasks_max(config))
            check_tasks_max(self.name, len(tasks), config)
        except TooManyTasks as error:
            context.raise_error(error)
        except Exception as error:  # noqa: BLE001  it is asked again, and the status says why
            if not context.is_cancelled():
                self._events.on_task_configs_failed(self.name, format_trace(error, context.secrets))
        else:
            if not context.is_cancelled():
                self._events.on_task_configs_generated(self.name, self._applied.properties, tasks)


def _must_stop(before: DesiredConnector, wish: DesiredConnector | None) -> bool:
    """Say whether the instance made for `before` has to go when `wish` comes true."""
    return wish is None or not wish.same_instance(before) or wish.state is not TargetState.STARTED
