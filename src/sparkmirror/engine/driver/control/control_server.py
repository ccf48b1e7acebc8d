"""The control server: the driver's end of all control connections, in one thread.

Acknowledges each report at once, and passes all other messages between tasks and the conductor of
their job. It has slots start tasks (`slots`), and tells
Spark's planner which epoch to run. It also ends epochs: `epoch_s` after the first slot of an epoch
has connected, the slots return their receipts, and the planner requests the next epoch. Tasks copy
on over the change if slots are kept; else, and before the last epoch ends, they are drained.

    RequestEpoch(n) ─▶ EpochAssignment(n+1) ─ tasks copy ─ epoch_s ─▶ EndEpoch ─▶ RequestEpoch(n+1)
    RequestEpoch(n) ── after stop_new_epochs() ──▶ EpochAssignment(n): nothing to run

If the tasks have copied on after the last epoch, one more follows, which has ended from its
beginning: its Spark tasks return the receipts that kept slots have of it.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Collection, Mapping
from functools import partial

from sparkmirror.copy.control.connection import ControlConnectionLost
from sparkmirror.copy.control.handshake import ConnectionCipher, ControlProtocol
from sparkmirror.copy.control.messages import (
    ControlMessage,
    Drain,
    EndEpoch,
    EpochAssignment,
    EpochEnded,
    EpochEndedAck,
    Hello,
    ProgressReport,
    ReleaseSlot,
    ReportAck,
    RequestEpoch,
    SlotHello,
    StartTask,
    TaskEnded,
)
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.control.authenticated_connection import PEER, AuthenticatedConnection
from sparkmirror.engine.driver.control.control_listener import ControlListener
from sparkmirror.engine.driver.slots.epoch import FIRST_EPOCH_S, Epoch
from sparkmirror.engine.driver.slots.slot_assignment import TaskKey
from sparkmirror.engine.driver.slots.slot_scheduler import SlotScheduler
from sparkmirror.errors import MirrorError

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.5
"""How often the thread looks at deadlines; events wake it at once."""
SCHEDULE_INTERVAL_S = 0.5
"""How often the scheduler looks for tasks whose next attempt is due; events wake it at once."""


class ControlServer:
    """Serves tasks, slots and Spark's planner. `endpoint` is its address.

    `start()` it, `close()` it.
    """

    def __init__(
        self,
        *,
        epoch_s: float,
        protocol: ControlProtocol,
        bind: str,
        host: str = "",
        port: int = 0,
        first_epoch_s: float = FIRST_EPOCH_S,
        keeps_slots: bool = False,
    ) -> None:
        """Listen at `bind`; tasks connect to `host` if that is another name for it.

        `keeps_slots`: Spark uses the processes of an epoch for the next one, so slots are kept.
        """
        self._keeps_slots = keeps_slots
        self._jobs: dict[str, ConductorApi] = {}
        self._scheduler = SlotScheduler(self._start_task, self._drain_tasks, self._release_slot)
        self._schedule_at = 0.0
        self._task_count = self._partition_count = 0
        self._epoch = Epoch(epoch_s, first_epoch_s)
        self._loop = EventLoop()
        self._listener = ControlListener(
            self._loop, self._on_connection, protocol=protocol, bind=bind, host=host, port=port
        )
        self.endpoint = self._listener.endpoint
        self._connections: set[AuthenticatedConnection] = set()
        self._log_levels: Mapping[str, int] = {}
        self._closing = False
        self._no_new_epochs = False
        self._ends_epoch_later = False
        self._has_kept_slots = False
        """Whether slots were kept after the epoch that began last."""
        self._idle = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="control-server", daemon=True)

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        log.info(
            "Control server listens at %s:%d and uses %s",
            *self.endpoint.address,
            self.endpoint.protocol,
        )
        self._thread.start()

    def set_job(
        self, name: str, conductor: ConductorApi, tasks: Collection[int], flow: str = ""
    ) -> None:
        """Run exactly these tasks of a job from now on, under this conductor."""
        self._loop.call_soon(partial(self._set_job, name, conductor, tuple(tasks), flow))

    def remove_job(self, name: str) -> None:
        """Forget a job. Its tasks lose their connections and end."""
        self._loop.call_soon(partial(self._remove_job, name))

    def restart_tasks(self, name: str, tasks: Collection[int]) -> None:
        """Drain these tasks of a job and start them again."""
        self._loop.call_soon(partial(self._restart_tasks, name, tuple(tasks)))

    def set_slots(self, *, available: int, tasks: int, partitions: int = 0) -> None:
        """Use at most so many slots of Spark for so many tasks. More slots end the epoch.

        `partitions` is how many all tasks have.
        """
        self._loop.call_soon(partial(self._set_slots, available, tasks, partitions))

    def stop_new_epochs(self) -> None:
        """End the running epoch, and answer every further request for an epoch with: none.

        The first request gets an epoch without copying if slots have receipts of it already.
        """
        self._no_new_epochs = True
        self.end_epoch()

    def end_epoch(self) -> None:
        """End the running epoch now; the next one follows."""
        self._loop.call_soon(self._end_epoch)

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Have slots set these levels from the next epoch on."""
        self._log_levels = {**self._log_levels, **levels}

    @property
    def is_idle(self) -> bool:
        """Whether the last epoch is over and the planner knows that no other follows."""
        return self._no_new_epochs and self._idle.is_set()

    @property
    def epoch(self) -> int:
        """The number of the epoch that began last; 0 before the first."""
        return self._epoch.number

    @property
    def is_ready(self) -> bool:
        """Whether every slot is connected, and the short first epoch is over."""
        connected, wanted = self._scheduler.connected, self._scheduler.slot_count
        is_running = self._epoch.number > 1 and not self._epoch.has_ended
        return is_running and connected >= wanted > 0

    @property
    def lacks_slots(self) -> bool:
        """Whether no slot has been connected for long: Spark has no free core for one."""
        return self._epoch.lacks_slots(time.monotonic(), connected=self._scheduler.connected)

    def task_problems(self, name: str) -> Mapping[int, str]:
        """Return why tasks of a job do not run, by task."""
        return self._scheduler.problems(name)

    def failure(self) -> Exception | None:
        """The error that has ended the thread, if there was one."""
        return self._failure

    def close(self) -> None:
        """Stop the thread and close all connections."""
        self._closing = True
        self._loop.call_soon(lambda: None)  # wakes the thread
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        for connection in self._connections:
            connection.close()
        self._listener.close()
        self._loop.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        self._listener.start()
        try:
            while not self._closing:
                self._loop.run_once(POLL_INTERVAL_S)
                self._check_deadlines(time.monotonic())
        except Exception as error:
            log.exception("The control server has failed; the driver ends")
            self._failure = error

    def _check_deadlines(self, now: float) -> None:
        if self._ends_epoch_later or self._epoch.is_over(now, self._partition_count):
            self._end_epoch()
        if now >= self._schedule_at:
            self._schedule_at = now + SCHEDULE_INTERVAL_S
            self._scheduler.poll(now)
        self._listener.reject_overdue(now)

    # -- jobs and slots --------------------------------------------------------------------------

    def _set_job(
        self, name: str, conductor: ConductorApi, tasks: tuple[int, ...], flow: str
    ) -> None:
        self._jobs[name] = conductor
        self._scheduler.set_tasks(name, flow, tasks)
        self._schedule_at = 0.0

    def _remove_job(self, name: str) -> None:
        self._jobs.pop(name, None)
        self._scheduler.forget(name)
        for connection in list(self._connections):
            if connection.hello and connection.hello.job == name:
                self._drop(connection)

    def _restart_tasks(self, name: str, tasks: tuple[int, ...]) -> None:
        self._scheduler.restart(name, tasks)
        self._schedule_at = 0.0

    def _set_slots(self, available: int, tasks: int, partitions: int) -> None:
        self._scheduler.available, self._task_count = available, tasks
        self._partition_count = partitions
        needed, now = self._scheduler.slots_needed(tasks), self._scheduler.slot_count
        is_ending = self._epoch.has_ended or self._ends_epoch_later
        if needed > now and not is_ending:
            log.info("The next epoch has %d slots instead of %d", needed, now)
            self._end_epoch()

    def _start_task(self, slot: SlotHello, start: StartTask) -> None:
        for connection in self._connections:
            if connection.slot == slot:
                self._enqueue_send(connection, start)

    def _drain_tasks(self, name: str, tasks: Collection[int]) -> None:
        if conductor := self._jobs.get(name):
            conductor.drain_tasks(tasks)

    def _end_epoch(self) -> None:
        """End the epoch, but not before Spark tasks had the time to adopt all kept slots.

        Else tasks that copy on would be drained. The scheduler does not wait long for a slot.
        """
        self._ends_epoch_later = (
            not self._epoch.has_ended
            and not self._no_new_epochs
            and self._scheduler.has_unadopted_slots
        )
        if self._ends_epoch_later or not self._epoch.end():
            return
        slots = set(self._scheduler.end_epoch())
        if self._keeps_slots and not self._no_new_epochs:
            self._keep_slots(slots)
            return
        for connection in self._connections:
            if connection.slot in slots:
                self._enqueue_send(connection, Drain())
        for conductor in self._jobs.values():
            conductor.end_epoch()

    def _keep_slots(self, slots: Collection[SlotHello]) -> None:
        """Have the slots return their receipts while their tasks copy on."""
        self._has_kept_slots = True
        self._scheduler.keep_slots(time.monotonic())
        for connection in self._connections:
            if connection.slot in slots:
                self._enqueue_send(connection, EndEpoch(epoch=self._epoch.number))
            elif connection.hello is not None:
                self._end_epoch_of_task(connection, connection.hello)

    def _end_epoch_of_task(self, connection: AuthenticatedConnection, hello: Hello) -> None:
        """Have a task of an epoch that has ended copy on, or drain it if its slot is not kept.

        An outdated attempt gets nothing: a drain would concern the later attempt, too.
        """
        key, epoch = TaskKey(hello.job, hello.task), self._epoch.number
        if self._scheduler.is_outdated(key, hello.attempt):
            return
        if self._scheduler.copies_on(key, hello.attempt, epoch):
            self._enqueue_send(connection, EndEpoch(epoch=epoch))
        else:
            self._drain_tasks(hello.job, (hello.task,))

    def _release_slot(self, slot: SlotHello) -> None:
        log.info("No Spark task runs slot %d of epoch %d on; its tasks move", slot.slot, slot.epoch)
        for connection in self._connections:
            if connection.slot == slot:
                self._enqueue_send(connection, ReleaseSlot())

    # -- connections -----------------------------------------------------------------------------

    def _on_connection(self, sock: socket.socket, cipher: ConnectionCipher) -> None:
        connection = AuthenticatedConnection(sock, self._on_message, cipher)
        self._connections.add(connection)
        self._loop.register(connection, partial(self._on_connection_lost, connection))

    def _on_connection_lost(self, connection: AuthenticatedConnection, _error: MirrorError) -> None:
        self._connections.discard(connection)
        connection.close()
        if connection.hello and (conductor := self._jobs.get(connection.hello.job)):
            conductor.on_task_left(connection.hello)
        if connection.slot:
            self._scheduler.remove_slot(connection.slot)
            self._epoch.on_slot_lost(time.monotonic())
            self._schedule_at = 0.0

    def _drop(self, connection: AuthenticatedConnection) -> None:
        self._connections.discard(connection)
        self._loop.unregister(connection)
        connection.close()

    def _on_message(self, connection: AuthenticatedConnection, message: ControlMessage) -> None:
        match message:
            case RequestEpoch():
                connection.send(self._on_next_epoch(message))
            case SlotHello() if connection.slot is None:
                self._on_slot_hello(connection, message)
            case SlotHello() if connection.slot is not None:
                self._on_slot_adopted(connection, connection.slot, message)
            case TaskEnded() if connection.slot is not None:
                self._scheduler.on_task_ended(connection.slot, message, time.monotonic())
                self._schedule_at = 0.0
            case Hello() if connection.hello is None:
                self._on_hello(connection, message)
            case _ if connection.hello is None:
                log.warning("Ignored %s received before Hello", type(message).__name__)
            case _:
                if isinstance(message, ProgressReport):
                    # Sent after all messages that arrived with the report are processed: a failed
                    # send closes the connection, and the last messages must not get lost.
                    self._enqueue_send(connection, ReportAck())
                elif isinstance(message, EpochEnded):
                    self._enqueue_send(connection, EpochEndedAck(epoch=message.epoch))
                if conductor := self._jobs.get(connection.hello.job):
                    conductor.on_task_message(connection.hello, message)

    def _on_slot_hello(self, connection: AuthenticatedConnection, slot: SlotHello) -> None:
        if slot.epoch != self._epoch.number:
            raise ControlConnectionLost(PEER, f"epoch {slot.epoch} is over")
        now = time.monotonic()
        connection.slot = slot
        if self._epoch.has_ended:
            # A second attempt, after the end of the epoch: drain it, or the next epoch would wait.
            self._enqueue_send(connection, Drain())
            return
        self._scheduler.add_slot(slot, now)
        self._on_slot_connected(now)

    def _on_slot_adopted(
        self, connection: AuthenticatedConnection, kept: SlotHello, slot: SlotHello
    ) -> None:
        """Run the tasks of a kept slot on in the running epoch, the one after that of the slot.

        A slot that was released, or is too late, ends; its Spark task opens another one.
        """
        if not self._scheduler.is_kept(kept):
            return
        is_next = slot.epoch == self._epoch.number == kept.epoch + 1
        if not is_next or self._epoch.has_ended:
            self._scheduler.release(kept)
            return
        connection.slot = slot
        now = time.monotonic()
        self._scheduler.adopt_slot(kept, slot, now)
        self._on_slot_connected(now)

    def _on_slot_connected(self, now: float) -> None:
        is_last = self._scheduler.connected == self._scheduler.slot_count
        after_s = self._epoch.on_slot_connected(now, is_last=is_last, is_idle=not self._jobs)
        if after_s is not None:
            log.info("Epoch %d: first slot connected after %.1f s", self.epoch, after_s)
        self._schedule_at = 0.0

    def _on_hello(self, connection: AuthenticatedConnection, hello: Hello) -> None:
        conductor = self._jobs.get(hello.job)
        key = TaskKey(hello.job, hello.task)
        if conductor is None or self._scheduler.is_outdated(key, hello.attempt):
            raise ControlConnectionLost(PEER, f"task {hello.task} of {hello.job} must not run")
        connection.hello = hello
        conductor.on_task_joined(hello, partial(self._enqueue_send, connection))
        is_late = self._keeps_slots and hello.epoch != self._epoch.number
        if is_late or self._scheduler.is_draining(key):
            conductor.drain_tasks((hello.task,))  # it was started before it had to end
        elif self._epoch.has_ended:
            self._end_epoch_of_task(connection, hello)  # it was started before its epoch ended

    def _on_next_epoch(self, request: RequestEpoch) -> EpochAssignment:
        if self._no_new_epochs and not self._has_kept_slots:
            self._epoch.end()
            self._idle.set()
            return self._assignment(request.finished_epoch)
        self._has_kept_slots = self._ends_epoch_later = False
        self._epoch.begin(request.finished_epoch + 1, time.monotonic())
        self._idle.clear()
        zombies = set(self._scheduler.begin_epoch(self._scheduler.slots_needed(self._task_count)))
        for connection in list(self._connections):
            if connection.slot in zombies:
                self._drop(connection)
        if self._no_new_epochs:
            self._end_epoch()
        return self._assignment(self._epoch.number)

    def _assignment(self, number: int) -> EpochAssignment:
        return EpochAssignment(
            number=number,
            slots=self._scheduler.slot_count,
            log_levels=dict(self._log_levels),
        )

    def _enqueue_send(self, connection: AuthenticatedConnection, message: ControlMessage) -> None:
        self._loop.call_soon(partial(self._send, connection, message))

    def _send(self, connection: AuthenticatedConnection, message: ControlMessage) -> None:
        if connection in self._connections:
            self._loop.run_guarded(connection, partial(connection.send, message))
