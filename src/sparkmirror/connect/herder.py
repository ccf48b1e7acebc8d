"""The herder: everything a Connect worker can be asked.

    REST ──▶ Herder ── reads ──▶ Answers ──▶ stores
                    ── changes ──▶ the herder's thread ──▶ ConfigRequests, Herd

One herder is one worker; a process may hold several (dedicated mode has one for each flow). It is
given its stores and connectors and knows no Kafka, no Spark, no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from sparkmirror.config import answer
from sparkmirror.connect import judge
from sparkmirror.connect.herding import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    LoggerLevel,
    Offsets,
    Put,
    StateInfo,
    TaskInfo,
    WorkerInfo,
)
from sparkmirror.connect.log_levels import check_level
from sparkmirror.connect.restart_plan import restart_plan
from sparkmirror.connect.settings import WorkerSettings
from sparkmirror.connect.worker_life import Surroundings, WorkerLife
from sparkmirror.errors import (
    Conflict,
    Forbidden,
    MirrorError,
    NotFound,
    RequestError,
    RequestFailed,
)
from sparkmirror.mirror.connect_configs import RestartRequest, TargetState
from sparkmirror.store.stores import Stores


class Herder:
    """One worker. Implements `Herding`; every method of that may be called by any thread."""

    def __init__(
        self, settings: WorkerSettings, stores: Stores, surroundings: Surroundings
    ) -> None:
        self._settings = settings
        self._about = surroundings.about
        self._log_levels = surroundings.log_levels
        self._judge = judge.Judge(settings.terms, surroundings.providers)
        self._life = WorkerLife(settings, stores, surroundings)

    # -- beginning and end -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin; returns at once. Whoever asks something waits until the start is over."""
        self._life.start()

    def wait_started(self, within_s: float) -> bool:
        """Wait for the end of the start; say whether it came. Raises what made it fail."""
        return self._life.wait_started(within_s)

    def wait_over(self, within_s: float | None = None) -> Exception | None:
        """Wait until it has ended, or died: then return why."""
        return self._life.wait_over(within_s)

    def shut_down(self) -> None:
        """End connectors and tasks, write that down, close the stores."""
        self._life.shut_down()

    # -- the worker ------------------------------------------------------------------------------

    def worker(self) -> WorkerInfo:
        """Say who this is."""
        return self._about()

    def health(self) -> Health:
        """Say whether the herder's thread takes part in life."""
        if self._life.is_alive(self._settings.health_timeout_s):
            said = "Worker has completed startup and is ready to handle requests."
            return Health(status="healthy", message=said)
        stage = self._life.stages.summary()
        if not self._life.has_started:
            said = f"Worker is still starting up. {stage}"
            return Health(status="starting", message=said.rstrip())
        said = (
            "Worker was unable to handle this request and may be unable to handle other requests."
        )
        return Health(status="unhealthy", message=f"{said} {stage}".rstrip())

    # -- reading ---------------------------------------------------------------------------------

    def connectors(self) -> Sequence[str]:
        """List all connectors."""
        return self._life.reading().connectors()

    def info(self, name: str) -> ConnectorInfo:
        """Say what a connector is."""
        return self._life.reading().info(name)

    def status(self, name: str) -> ConnectorStatus:
        """Say how a connector and its tasks do."""
        return self._life.reading().status(name)

    def task_status(self, name: str, task: int) -> StateInfo:
        """Say how a task does."""
        return self._life.reading().task_status(name, task)

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """List a connector's task configs."""
        return self._life.reading().tasks(name)

    # -- changing --------------------------------------------------------------------------------

    def create(self, name: str, config: Config, initial_state: TargetState | None) -> Put:
        """Make a connector that is not there yet."""
        self._judge.admit(config)

        def errand() -> Put:
            self._life.requests.create(name, config, initial_state)
            return Put(info=self._as_sent(name, config), created=True)

        return self._life.ask(errand)

    def put_config(self, name: str, config: Config) -> Put:
        """Make a connector, or give it another config."""
        self._judge.admit(config)

        def errand() -> Put:
            created = self._life.requests.put(name, config)
            return Put(info=self._as_sent(name, config), created=created)

        return self._life.ask(errand)

    def patch_config(self, name: str, patch: Config) -> ConnectorInfo:
        """Change some keys of a connector's config; null takes a key away."""

        def errand() -> ConnectorInfo:
            config = self._life.requests.patched(name, patch)
            self._judge.admit(config)
            self._life.requests.put(name, config)
            return self._as_sent(name, config)

        return self._life.ask(errand)

    def delete(self, name: str) -> None:
        """Remove a connector. Its offsets stay."""
        self._life.ask(partial(self._life.requests.remove, name))

    def pause(self, name: str) -> None:
        """Have a connector and its tasks hold still."""
        self._life.ask(partial(self._life.requests.ask_for, name, TargetState.PAUSED))

    def resume(self, name: str) -> None:
        """Have a connector run again, whether it was paused or stopped."""
        self._life.ask(partial(self._life.requests.ask_for, name, TargetState.STARTED))

    def stop(self, name: str) -> None:
        """Have a connector end and its tasks removed, until it is resumed."""
        self._life.ask(partial(self._life.requests.ask_for, name, TargetState.STOPPED))

    def _as_sent(self, name: str, config: Config) -> ConnectorInfo:
        """Describe it as of now, before anything has followed from the change."""
        return replace(self._life.answers.info(name), config=config)

    # -- restarting ------------------------------------------------------------------------------

    def restart(self, name: str) -> None:
        """Begin a connector anew, but not its tasks; returns when it has started."""

        def errand(waiting: Future[None]) -> None:
            self._must_know(name)
            self._life.herd.restart(name, waiting)

        self._life.ask_for(errand)

    def restart_with(self, name: str, *, include_tasks: bool, only_failed: bool) -> ConnectorStatus:
        """Have all, or what failed, begun anew; returns at once what is concerned."""
        request = RestartRequest(
            connector=name, include_tasks=include_tasks, only_failed=only_failed
        )

        def errand() -> ConnectorStatus:
            self._must_know(name)
            try:
                status = self._life.answers.status(name)
            except NotFound:
                raise NotFound(f"Status for connector {name} not found") from None
            self._life.requests.ask_for_restart(request)
            return restart_plan(request, status).told

        return self._life.ask(errand)

    def restart_task(self, name: str, task: int) -> None:
        """Begin one task anew."""

        def errand(waiting: Future[None]) -> None:
            self._must_know(name)
            if task < len(self._life.answers.tasks(name)):
                self._life.herd.restart_task(name, task, waiting)
            elif self._life.herd.has_had_task(name, task):
                raise Conflict(
                    "Cannot complete request momentarily due to no known leader URL, likely "
                    "because a rebalance was underway."
                )
            else:
                raise NotFound(f"Unknown task: {name}-{task}")

        self._life.ask_for(errand)

    def _must_know(self, name: str) -> None:
        if name not in self._life.answers.connectors():
            raise NotFound(f"Unknown connector: {name}")

    # -- topics and offsets ----------------------------------------------------------------------

    def active_topics(self, name: str) -> Sequence[str]:
        """List the topics that a connector was seen to use."""
        return self._life.reading().active_topics(name)

    def reset_active_topics(self, name: str) -> None:
        """Forget which topics a connector uses."""
        if not self._settings.tracks_topics:
            raise Forbidden("Topic tracking is disabled.")
        if not self._settings.allows_reset_of_topics:
            raise Forbidden("Topic tracking reset is disabled.")
        self._life.ask(partial(self._life.book.forget_topics, name))

    def offsets(self, name: str) -> Sequence[Offsets]:
        """List what is stored of a connector's offsets."""
        self._life.reading()
        try:
            return self._life.offsets.show(name)
        except MirrorError as error:
            raise _for_people(error) from error

    def alter_offsets(self, name: str, offsets: Sequence[Offsets]) -> str:
        """Write offsets of a stopped connector."""
        return self._change_offsets(name, partial(self._life.offsets.alter, name, offsets))

    def reset_offsets(self, name: str) -> str:
        """Forget the offsets of a stopped connector."""
        return self._change_offsets(name, partial(self._life.offsets.reset, name))

    def _change_offsets(self, name: str, change: Callable[[], str]) -> str:
        """Do it when the last task has stopped, and before another one can start."""

        def errand(answer: Future[str]) -> None:
            self._life.herd.between_tasks(name, partial(_answer, answer, change))

        return self._life.ask_for(errand)

    # -- plug-ins and loggers --------------------------------------------------------------------

    def plugins(self, *, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
        """List what this worker offers."""
        return judge.plugins(connectors_only=connectors_only)

    def plugin_config(self, plugin: str, version: str | None = None) -> Sequence[Mapping[str, Any]]:
        """List every key that a plug-in reads."""
        return answer.plugin_config(plugin, version)

    def validate(self, plugin: str, config: Config) -> Mapping[str, Any]:
        """Judge a config; faults are part of the answer."""
        return self._judge.validate(plugin, config)

    def loggers(self) -> Mapping[str, LoggerLevel]:
        """List all loggers."""
        return self._log_levels.all()

    def logger(self, name: str) -> LoggerLevel:
        """Say how loud a logger is."""
        return self._log_levels.level(name)

    def set_logger(self, name: str, level: str, *, everywhere: bool) -> Sequence[str]:
        """Make a logger louder or quieter, on this worker or on all of the group."""
        wanted = check_level(level)
        if not everywhere:
            return self._log_levels.set_level(name, wanted)
        self._life.ask(partial(self._life.requests.set_level, name, wanted))
        self._life.ask(lambda: None)  # by then this worker has heeded it too
        return ()


def _answer(answer: Future[str], change: Callable[[], str]) -> None:
    try:
        answer.set_result(change())
    except MirrorError as error:
        answer.set_exception(_for_people(error))
    except Exception as error:  # noqa: BLE001  it is raised where it was asked
        answer.set_exception(error)


def _for_people(error: MirrorError) -> RequestError:
    return error if isinstance(error, RequestError) else RequestFailed(str(error))
