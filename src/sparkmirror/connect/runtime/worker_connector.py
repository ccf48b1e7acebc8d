"""One connector on this worker: brings the running instance to the desired state.

    herder thread ── transition_to, request_task_configs ──▶ executor ──▶ Connector.start,
                                                                          task_configs, stop
    herder thread ◀── ConnectorEvents (posted, in order) ── executor, or the connector's threads

Every start creates a new instance; a stopped instance no longer receives or sends events. A
request that makes the running call pointless cancels it at once, so that no request waits for a
cluster that is down.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sparkmirror.connect.connector import Connector
from sparkmirror.connect.runtime.config_transformer import TransformedConfig
from sparkmirror.connect.runtime.connector_registry import lookup_connector
from sparkmirror.connect.runtime.desired_state import DesiredState
from sparkmirror.connect.runtime.run_context import RunContext
from sparkmirror.connect.runtime.status.stack_traces import format_trace, hide_secrets
from sparkmirror.connect.runtime.tasks_max import check_tasks_max, tasks_max
from sparkmirror.connect.runtime.threads.event_poster import EventPoster
from sparkmirror.connect.runtime.threads.serial_executor import SerialExecutor
from sparkmirror.errors import MirrorError, TasksNotPlanned, TooManyTasks
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState

log = logging.getLogger(__name__)


class ConnectorEvents(Protocol):
    """Events of connectors, handled on the herder thread."""

    def on_target_state_reached(
        self, name: str, desired: DesiredState, config: TransformedConfig | None
    ) -> None:
        """The connector is as desired, with this config (None: it was never started)."""
        ...

    def on_values_changed(self, name: str, desired: DesiredState) -> None:
        """Config providers have other values for the connector, or for the worker's file."""
        ...

    def on_connector_failed(self, name: str, trace: str) -> None:
        """The start failed, or the connector raised an error later."""
        ...

    def on_connector_stopped(self, name: str, *, restarting: bool) -> None:
        """The instance has ended; another one may follow."""
        ...

    def on_connector_removed(self, name: str) -> None:
        """The instance has ended, and no other one follows."""
        ...

    def on_task_configs_generated(
        self, name: str, properties: ConfigProperties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        """The connector returned its task configs, with these properties."""
        ...

    def on_task_configs_failed(self, name: str, trace: str) -> None:
        """The connector could not return its task configs; the herder may ask again."""
        ...

    def on_tasks_not_planned(self, name: str) -> None:
        """The connector does not know its tasks yet; it will ask for a call of `task_configs`."""
        ...

    def on_reconfiguration_requested(self, name: str) -> None:
        """The connector asks for a call of `task_configs`."""
        ...

    def on_connector_problem(self, name: str, text: str) -> None:
        """The connector reports what does not work now; an empty text means solved."""
        ...


class _InstanceContext:
    """The ConnectorContext of one instance, until it is cancelled."""

    def __init__(self, name: str, events: ConnectorEvents, poster: EventPoster) -> None:
        self._name = name
        self._events = events
        self._poster = poster
        self._is_cancelled = False
        self.secrets: frozenset[str] = frozenset()

    def request_task_reconfiguration(self) -> None:
        if not self._is_cancelled:
            self._poster.post(self._events.on_reconfiguration_requested, self._name)

    def report_problem(self, text: str) -> None:
        if not self._is_cancelled:
            self._poster.post(self._deliver_problem, hide_secrets(text, self.secrets))

    def raise_error(self, error: BaseException) -> None:
        if not self._is_cancelled:
            trace = format_trace(error, self.secrets)
            log.error("Connector %s raised an error: %s", self._name, trace)
            self._poster.post(self._events.on_connector_failed, self._name, trace)

    def is_cancelled(self) -> bool:
        return self._is_cancelled

    def cancel(self) -> None:
        """Ignore the instance from now on."""
        self._is_cancelled = True

    def _deliver_problem(self, text: str) -> None:
        """Run on the herder thread, which may have cancelled this instance meanwhile."""
        if not self._is_cancelled:
            self._events.on_connector_problem(self._name, text)


class WorkerConnector:
    """One connector's thread. The herder thread calls the public methods."""

    def __init__(
        self, name: str, run_context: RunContext, events: ConnectorEvents, poster: EventPoster
    ) -> None:
        """`poster` carries `events` to the herder thread."""
        self.name = name
        self._run_context = run_context
        self._events = events
        self._poster = poster
        self._executor = SerialExecutor(f"connector-thread-{name}", connector=name, scope="worker")
        self._desired: DesiredState | None = None
        self._last_request = 0
        self._context = _InstanceContext(name, events, poster)
        self._abandoned = threading.Event()
        # The executor's thread owns the following attributes.
        self._released = 0
        self._applied: DesiredState | None = None
        self._config: TransformedConfig | None = None
        self._worker_values: Mapping[str, str] = {}
        self._connector: Connector | None = None

    def transition_to(self, desired: DesiredState | None) -> int:
        """Bring the connector to a state; return a number for `has_released`. None removes it."""
        before, self._desired = self._desired, desired
        if before is not None and _must_stop(before, desired):
            self._context.cancel()
        self._last_request += 1
        request = self._last_request
        self._executor.submit(lambda: self._apply(desired, request))
        if desired is None:
            self._executor.close()
        return request

    def request_task_configs(self) -> None:
        """Ask the connector for its task configs; an event brings the answer."""
        self._executor.submit(self._generate_task_configs)

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job after all earlier requests and before all later ones."""
        self._executor.submit(job)

    def request_value_check(self) -> None:
        """Compare the values of config providers with those in use; an event says if they differ.

        A provider that fails changes nothing.
        """
        self._executor.submit(self._check_values)

    def has_released(self, request: int) -> bool:
        """Return whether the instance that ran before that request has ended."""
        return self._released >= request

    def abandon(self) -> None:
        """Leave the hung thread alone. If its call ever returns, it cleans up and ends."""
        self._abandoned.set()
        self._context.cancel()
        self._executor.abandon()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        return self._executor.join(timeout_s)

    # -- the executor's thread -------------------------------------------------------------------

    def _apply(self, desired: DesiredState | None, request: int) -> None:
        before, self._applied = self._applied, desired
        needs_instance = before is None or desired is None or not desired.same_instance(before)
        if before is not None and _must_stop(before, desired):
            self._stop()
        self._released = request
        if self._abandoned.is_set():
            return  # another thread runs the connector now
        if before is not None and before.runs_connector and needs_instance:
            restarting = desired is not None and desired.is_restart
            self._poster.post(self._events.on_connector_stopped, self.name, restarting=restarting)
        if desired is None:
            self._poster.post(self._events.on_connector_removed, self.name)
        elif desired.runs_connector and (
            needs_instance or before is None or before.state is not desired.state
        ):
            self._enter_state(desired)
        if self._abandoned.is_set():
            self._stop()

    def _enter_state(self, desired: DesiredState) -> None:
        context = self._context = _InstanceContext(self.name, self._events, self._poster)
        latest = self._desired
        if latest is not desired and (latest is None or _must_stop(desired, latest)):
            context.cancel()  # a later request has replaced this one while it was queued
        if self._abandoned.is_set():
            context.cancel()
        try:
            if desired.state is TargetState.STARTED:
                self._start(desired, context)
        except Exception as error:  # noqa: BLE001  any error makes the connector FAILED
            trace, is_cancelled = format_trace(error, context.secrets), context.is_cancelled()
            self._stop()
            if not is_cancelled:
                log.error("Error while starting connector %s: %s", self.name, trace)
                self._poster.post(self._events.on_connector_failed, self.name, trace)
        else:
            if not context.is_cancelled():
                self._poster.post(
                    self._events.on_target_state_reached, self.name, desired, self._config
                )

    def _start(self, desired: DesiredState, context: _InstanceContext) -> None:
        log.info("Starting connector %s", self.name)
        self._config = self._run_context.transformer.transform(desired.properties)
        self._worker_values = self._read_worker_values()
        context.secrets = self._config.secrets
        registered = lookup_connector(self._run_context.registry, self._config.values)
        self._connector = registered.connector(self.name, context)
        self._connector.start(self._config.values)

    def _stop(self) -> None:
        connector, self._connector = self._connector, None
        if connector is None:
            return
        self._context.cancel()
        log.info("Stopping connector %s", self.name)
        try:
            connector.stop()
        except Exception as error:  # noqa: BLE001  the instance is dropped in any case
            trace = format_trace(error, self._context.secrets)
            log.error("Error while shutting down connector %s: %s", self.name, trace)

    def _check_values(self) -> None:
        if self._connector is None or self._applied is None or self._config is None:
            return
        try:
            current = self._run_context.transformer.transform(self._applied.properties)
            worker_values = self._read_worker_values()
        except MirrorError:
            log.debug("Values of connector %s cannot be fetched now", self.name)
            return
        if self._config.is_changed_by(current) or worker_values != self._worker_values:
            self._poster.post(self._events.on_values_changed, self.name, self._applied)

    def _read_worker_values(self) -> Mapping[str, str]:
        read = self._run_context.read_worker_values
        return {} if read is None else dict(read())

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
        except TasksNotPlanned:
            if not context.is_cancelled():
                self._poster.post(self._events.on_tasks_not_planned, self.name)
        except Exception as error:  # noqa: BLE001  the status shows it, and the herder asks again
            if not context.is_cancelled():
                trace = format_trace(error, context.secrets)
                self._poster.post(self._events.on_task_configs_failed, self.name, trace)
        else:
            if not context.is_cancelled():
                properties = self._applied.properties
                self._poster.post(
                    self._events.on_task_configs_generated, self.name, properties, tasks
                )


def _must_stop(before: DesiredState, desired: DesiredState | None) -> bool:
    """Return whether the instance made for `before` must stop to reach `desired`."""
    return (
        desired is None
        or not desired.same_instance(before)
        or not desired.runs_connector
        or desired.state is not TargetState.STARTED
    )
