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
from sparkmirror.connect.expansion import Expanded, Expander
from sparkmirror.connect.kinds import ConnectorKinds, kind_of
from sparkmirror.connect.lane import Lane
from sparkmirror.connect.tasks_max import check_tasks_max, tasks_max
from sparkmirror.connect.traces import TooManyTasks, trace
from sparkmirror.mirror.connect_configs import Properties, TargetState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorWish:
    """What a connector should be."""

    properties: Properties
    state: TargetState
    turn: int
    """Another turn means: begin anew, even with the same properties."""
    restarting: bool = False
    """Whether to say RESTARTING before it begins anew."""

    def same_run(self, other: ConnectorWish) -> bool:
        """Say whether an instance made for the one serves the other too."""
        return self.turn == other.turn and self.properties == other.properties


class ConnectorEvents(Protocol):
    """What becomes of connectors. Any thread calls; nothing blocks."""

    def connector_is(self, name: str, wish: ConnectorWish, ttl_ms: int | None) -> None:
        """It has become what was wished, with values that hold for so long (None: for ever)."""
        ...

    def connector_failed(self, name: str, told: str) -> None:
        """It could not, or it raised an error later; `told` is the trace."""
        ...

    def connector_ended(self, name: str, *, restarting: bool) -> None:
        """The instance is no more; another one may follow."""
        ...

    def connector_gone(self, name: str) -> None:
        """It is no more, and nothing is to follow."""
        ...

    def connector_planned(
        self, name: str, properties: Properties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        """It said what its tasks are, under these properties."""
        ...

    def planning_failed(self, name: str, told: str) -> None:
        """It could not say what its tasks are; it may be asked again."""
        ...

    def connector_asks(self, name: str) -> None:
        """It wants to be asked what its tasks are."""
        ...


class _Context:
    """What one instance tells the herder, until it is cancelled."""

    def __init__(self, name: str, events: ConnectorEvents) -> None:
        self._name = name
        self._events = events
        self._is_cancelled = False
        self.secrets: frozenset[str] = frozenset()

    def request_task_reconfiguration(self) -> None:
        if not self._is_cancelled:
            self._events.connector_asks(self._name)

    def raise_error(self, error: BaseException) -> None:
        if not self._is_cancelled:
            log.error("Connector raised an error: %s", trace(error, self.secrets))
            self._events.connector_failed(self._name, trace(error, self.secrets))

    def is_cancelled(self) -> bool:
        return self._is_cancelled

    def cancel(self) -> None:
        """From now on nobody listens."""
        self._is_cancelled = True


class ConnectorRun:
    """One connector's thread. Public methods are for the herder's thread."""

    def __init__(
        self, name: str, kinds: ConnectorKinds, expander: Expander, events: ConnectorEvents
    ) -> None:
        self.name = name
        self._kinds = kinds
        self._expander = expander
        self._events = events
        self._lane = Lane(f"connector-thread-{name}", connector=name, scope="worker")
        self._wished: ConnectorWish | None = None
        self._asked = 0
        self._context = _Context(name, events)
        self._is_given_up = False
        # What follows belongs to the lane.
        self._released = 0
        self._applied: ConnectorWish | None = None
        self._config: Expanded | None = None
        self._connector: Connector | None = None

    def want(self, wish: ConnectorWish | None) -> int:
        """Have it so; returns a number for `has_let_go`. None ends the run."""
        before, self._wished = self._wished, wish
        if before is not None and _ends(before, wish):
            self._context.cancel()
        self._asked += 1
        number = self._asked
        self._lane.post(lambda: self._apply(wish, number))
        if wish is None:
            self._lane.close()
        return number

    def plan(self) -> None:
        """Ask what its tasks are."""
        self._lane.post(self._plan)

    def has_let_go(self, number: int) -> bool:
        """Say whether what ran before that wish has come to its end."""
        return self._released >= number

    def give_up(self) -> None:
        """Leave the thread, which hangs, to itself. If it ever goes on, it cleans up and ends."""
        self._is_given_up = True
        self._context.cancel()
        self._lane.give_up()

    def join(self, within_s: float) -> bool:
        """Wait for the end of the thread; say whether it came."""
        return self._lane.join(within_s)

    # -- the lane --------------------------------------------------------------------------------

    def _apply(self, wish: ConnectorWish | None, number: int) -> None:
        before, self._applied = self._applied, wish
        anew = before is None or wish is None or not wish.same_run(before)
        if before is not None and _ends(before, wish):
            self._stop()
        self._released = number
        if before is not None and anew:
            restarting = wish is not None and wish.restarting
            self._events.connector_ended(self.name, restarting=restarting)
        if wish is None:
            self._events.connector_gone(self.name)
        elif anew or before is None or before.state is not wish.state:
            self._become(wish)
        if self._is_given_up:
            self._stop()

    def _become(self, wish: ConnectorWish) -> None:
        context = self._context = _Context(self.name, self._events)
        if self._wished is not wish and (self._wished is None or _ends(wish, self._wished)):
            context.cancel()  # it was overtaken while it waited for its turn
        try:
            if wish.state is TargetState.STARTED:
                self._start(wish, context)
        except Exception as error:  # noqa: BLE001  whatever it is, it makes the connector FAILED
            told, is_wanted = trace(error, context.secrets), not context.is_cancelled()
            self._stop()
            if is_wanted:
                log.error("Error while starting connector %s: %s", self.name, told)
                self._events.connector_failed(self.name, told)
        else:
            if not context.is_cancelled():
                ttl_ms = None if self._config is None else self._config.ttl_ms
                self._events.connector_is(self.name, wish, ttl_ms)

    def _start(self, wish: ConnectorWish, context: _Context) -> None:
        log.info("Starting connector %s", self.name)
        self._config = self._expander.expand(wish.properties)
        context.secrets = self._config.secrets
        kind = kind_of(self._kinds, self._config.values)
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
            told = trace(error, self._context.secrets)
            log.error("Error while shutting down connector %s: %s", self.name, told)

    def _plan(self) -> None:
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
                self._events.planning_failed(self.name, trace(error, context.secrets))
        else:
            if not context.is_cancelled():
                self._events.connector_planned(self.name, self._applied.properties, tasks)


def _ends(before: ConnectorWish, wish: ConnectorWish | None) -> bool:
    """Say whether the instance made for `before` has to go when `wish` comes true."""
    return wish is None or not wish.same_run(before) or wish.state is not TargetState.STARTED
