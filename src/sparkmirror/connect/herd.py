"""All connectors of this worker: brings what runs to what the config topic says.

    config topic ──▶ heard ──▶ settle ──▶ Place ──▶ events ──▶ statuses, task configs

Belongs to the herder's thread: nothing here may block, but for writes to the stores. Everything is
done by comparing what is wanted with what was last asked for, so that nothing depends on which
changes were seen, and in which order.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final

from sparkmirror.connect.connector_run import ConnectorRun, ConnectorWish
from sparkmirror.connect.expansion import stored_tasks
from sparkmirror.connect.membership import Membership
from sparkmirror.connect.place import Means, Place, Wanted
from sparkmirror.connect.stages import Stages
from sparkmirror.connect.statuses import STATES, StatusBook
from sparkmirror.connect.task_accounts import TaskAccounts
from sparkmirror.connect.task_run import TaskRun
from sparkmirror.errors import Conflict, MirrorError, RequestFailed
from sparkmirror.mirror.connect_configs import Properties, TargetState
from sparkmirror.mirror.connect_statuses import State
from sparkmirror.store.keeping import ConfigStore

log = logging.getLogger(__name__)

RELOAD: Final = "config.action.reload"
RESTART: Final = "restart"


class Herd:
    """Every connector's place. Also hears what becomes of connectors."""

    def __init__(
        self,
        means: Means,
        configs: ConfigStore,
        statuses: StatusBook,
        member: Membership,
        stages: Stages,
        *,
        tracks_topics: bool,
    ) -> None:
        self._means = means
        self._configs = configs
        self._statuses = statuses
        self._member = member
        self._stages = stages
        self._tasks = TaskAccounts(statuses, self._tasks_gone, tracks_topics=tracks_topics)
        self._places: dict[str, Place] = {}
        self._is_leaving = False

    # -- what is wanted --------------------------------------------------------------------------

    def settle_all(self) -> None:
        """Bring everything to what the config topic says."""
        for name in self._configs.snapshot().connectors():
            self.settle(name)

    def settle(self, name: str) -> None:
        """Bring one connector to what the config topic says."""
        state = self._configs.snapshot()
        properties = None if self._is_leaving else state.connector(name)
        place = self._places.get(name)
        if properties is None:
            if place is not None:
                place.release()
            return
        if place is None:
            place = self._places[name] = Place(name, self._means, self, self._tasks)
            place.planning.applied = properties
        if place.is_leaving:
            return  # what is left of the last one of that name has to go first
        place.want(
            Wanted(
                properties=properties,
                state=state.target_state(name) or TargetState.STARTED,
                tasks=state.tasks(name),
                generation=state.task_generation(name) or 0,
            )
        )

    def connector_written(self, name: str) -> None:
        """A connector's config was written, or removed: begin it anew."""
        place = self._places.get(name)
        exists = self._configs.snapshot().connector(name) is not None
        if (place is not None) is not exists:
            self._member.rebalance()
        if place is not None:
            place.begin_anew()
        self.settle(name)

    def tasks_written(self, name: str) -> None:
        """A set of task configs was written."""
        self._member.rebalance()
        place = self._places.get(name)
        if place is not None:
            place.planning.applied = self._configs.snapshot().connector(name)
        self.settle(name)

    def restart(self, name: str, waiting: Future[None]) -> None:
        """Begin a connector anew, but not its tasks. Answered when it has become what it should."""
        place = self._present(name)
        place.waiting.append(waiting)
        place.begin_anew()
        self.settle(name)

    def restart_parts(self, name: str, *, connector: bool, tasks: Collection[int]) -> None:
        """Begin anew what a restart plan says."""
        place = self._places.get(name)
        if place is None or place.is_leaving:
            return
        if connector:
            place.begin_anew(restarting=True)
            self.settle(name)
        if tasks:
            place.restart_tasks(tasks)

    def restart_task(self, name: str, task: int, waiting: Future[None]) -> None:
        """Begin one task anew. Answered when that was taken on."""
        self._present(name).restart_tasks([task], done=partial(waiting.set_result, None))

    def between_tasks(self, name: str, job: Callable[[], None]) -> None:
        """Have something done while no task of a connector runs that was told to stop.

        It is done by the thread that starts and stops them, so that none can start meanwhile.
        """
        place = self._places.get(name)
        if place is None or place.is_leaving:
            job()
        else:
            place.between_tasks(job)

    def has_had_task(self, name: str, task: int) -> bool:
        """Say whether a connector has, or had, a task of that number."""
        return name in self._places and task < self._places[name].most_tasks

    def _present(self, name: str) -> Place:
        """Where a connector runs, unless it has just come or is about to go."""
        place = self._places.get(name)
        if place is None or place.is_leaving:
            raise Conflict(
                "Cannot complete request momentarily due to stale configuration (typically caused "
                "by a concurrent config change)"
            )
        return place

    def leave(self) -> Sequence[ConnectorRun | TaskRun]:
        """Give everything up, because the worker ends. Returns whose end to wait for."""
        self._is_leaving = True
        self._tasks.leave()
        for place in list(self._places.values()):
            place.release()
        return [run for place in self._places.values() for run in place.runs()]

    # -- what became of connectors ---------------------------------------------------------------

    def connector_is(self, name: str, wish: ConnectorWish, ttl_ms: int | None) -> None:
        """It has become what was wished; if it runs, it is asked for its tasks."""
        place = self._places[name]
        if not place.is_wished(wish):
            return
        place.has_failed = False
        self._statuses.connector(name, STATES[wish.state])
        for waiting in _taken(place.waiting):
            waiting.set_result(None)
        if wish.state is TargetState.STARTED:
            place.planning.succeeded()
            place.plan()
        if ttl_ms is not None and wish.properties.get(RELOAD, RESTART) == RESTART:
            self._means.errands.later(ttl_ms / 1000, partial(self._reload, place, wish))

    def connector_failed(self, name: str, told: str) -> None:
        """It could not, or it raised an error later."""
        place = self._places[name]
        place.has_failed = True
        self._statuses.connector(name, State.FAILED, told)
        for waiting in _taken(place.waiting):
            waiting.set_exception(RequestFailed(f"Failed to start connector: {name}"))

    def connector_ended(self, name: str, *, restarting: bool) -> None:
        """The instance is no more."""
        self._statuses.connector(name, State.UNASSIGNED)
        if restarting:
            self._statuses.connector(name, State.RESTARTING)

    def connector_gone(self, name: str) -> None:
        """Nothing is to follow."""
        place = self._places[name]
        for waiting in _taken(place.waiting):
            waiting.set_exception(RequestFailed(f"Failed to start connector: {name}"))
        if not self._is_leaving:
            self._statuses.forget_connector(name)
        self._note_left(place, "connector")

    def connector_asks(self, name: str) -> None:
        """It wants to be asked for its tasks; one that has failed is not."""
        if not self._places[name].has_failed:
            self._places[name].plan()

    def planning_failed(self, name: str, told: str) -> None:
        """It is asked again after a pause; meanwhile its status says why it has no new tasks."""
        place = self._places[name]
        pause_s = place.planning.next_pause_s()
        log.error(
            "Failed to reconfigure connector's tasks (%s), retrying after %.2f s: %s",
            name, pause_s, told,
        )  # fmt: skip
        if not place.has_failed:
            place.planning.remark = told
            self._statuses.connector(name, State.RUNNING, told)
        self._means.errands.later(pause_s, partial(self._plan_again, place))

    def connector_planned(
        self, name: str, properties: Properties, tasks: Sequence[Mapping[str, str]]
    ) -> None:
        """Write its task configs if they changed, and it still should have any."""
        place = self._places[name]
        if place.planning.remark and not place.has_failed:
            self._statuses.connector(name, State.RUNNING)
        if self._must_write(place, properties, configs := stored_tasks(properties, tasks)):
            try:
                with self._stages.now(f"writing task configs of connector {name}"):
                    self._configs.put_tasks(name, configs)
            except MirrorError as error:
                self.planning_failed(name, str(error))
                return
        place.planning.succeeded()
        place.planned()

    def _must_write(
        self, place: Place, properties: Properties, configs: Sequence[Properties]
    ) -> bool:
        state = self._configs.snapshot()
        is_wanted = state.target_state(place.name) is TargetState.STARTED and not place.is_leaving
        if not is_wanted or state.connector(place.name) != properties:
            return False  # the answer of an instance that is about to go
        if configs == list(state.tasks(place.name)) and place.planning.applied == properties:
            log.debug("Skipping reconfiguration of connector %s: nothing has changed", place.name)
            return False
        return True

    def _reload(self, place: Place, wish: ConnectorWish) -> None:
        """Begin anew because a provider said that its values may have changed."""
        if self._places.get(place.name) is place and place.is_wished(wish):
            log.info("Restarting connector %s: values of its config have expired", place.name)
            self.restart_parts(place.name, connector=True, tasks=())
            place.restart_all_tasks()

    def _plan_again(self, place: Place) -> None:
        if self._places.get(place.name) is place and not (place.is_leaving or place.has_failed):
            place.planning.is_under_way = False
            place.plan()

    def _tasks_gone(self, name: str) -> None:
        self._note_left(self._places[name], "tasks")

    def _note_left(self, place: Place, part: str) -> None:
        if place.left(part):
            del self._places[place.name]
            self._member.rebalance()
            self.settle(place.name)  # the name may have been taken again


def _taken(waiting: list[Future[None]]) -> list[Future[None]]:
    """Take all out of the list; those that got an error meanwhile wait no more."""
    taken = [one for one in waiting if not one.done()]
    waiting.clear()
    return taken
