"""The control server: the driver's end of every control channel, in one thread.

Lets in who knows the secret, answers each report with a beat at once, passes on everything else to
the conductor and back, and tells the query which epoch comes next. It also keeps the time: so long
after the first task of an epoch has come, all are drained, their receipts land, and the query asks
for the next one.

    NextEpoch(n) ──▶ Epoch(n+1) ── tasks come, copy ── epoch_s ──▶ drained ──▶ NextEpoch(n+1)
    NextEpoch(n) ── after finish() ──▶ Epoch(n): rest
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from functools import partial

from sparkmirror.copy.control.encryption import CipherPair
from sparkmirror.copy.control.messages import (
    ControlMessage,
    EpochAssignment,
    Hello,
    ProgressReport,
    ReportAck,
    RequestEpoch,
)
from sparkmirror.copy.event_loop import EventLoop
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.conductor_api import ConductorApi
from sparkmirror.engine.driver.control_connections import (
    Acceptor,
    AuthenticatedConnection,
    Handshake,
)
from sparkmirror.errors import DriverLost, MirrorError

log = logging.getLogger(__name__)

NEVER = float("inf")
POLL_INTERVAL_S = 0.1
HANDSHAKE_TIMEOUT_S = 5.0
SECRET_BYTES = 32
FIRST_EPOCH_S = 15.0
"""Spark is slow whenever it does something for the first time. So that the end of an epoch is not
in the middle of the day, the first one is short, once all its tasks are there."""
SLOT_TIMEOUT_S = 20.0
"""A task that has not come so long after its epoch began is waiting for a slot."""


class ControlServer:
    """Serves tasks and the query. Use: `start()`, then `post` is where to find it; `close()`."""

    def __init__(
        self,
        conductor: ConductorApi,
        *,
        tasks: int,
        epoch_s: float,
        bind: str,
        host: str = "",
        port: int = 0,
        first_epoch_s: float = FIRST_EPOCH_S,
    ) -> None:
        """Listen at `bind`; tasks are told to come to `host`, if that is another name for it."""
        self._conductor = conductor
        self._task_count = tasks
        self._epoch_s = epoch_s
        self._first_epoch_s = first_epoch_s
        listener = _listen(_without_brackets(bind), port)
        self.endpoint = ControlEndpoint(
            host=_without_brackets(host or bind),
            port=listener.getsockname()[1],
            secret=secrets.token_hex(SECRET_BYTES).encode(),
        )
        self._loop = EventLoop()
        self._acceptor = Acceptor(listener, self._on_accept)
        self._handshakes: set[Handshake] = set()
        self._connections: set[AuthenticatedConnection] = set()
        self._closing = False
        self._no_new_epochs = False
        self._idle = threading.Event()
        self._epoch = 0
        self._epoch_requested_at = 0.0
        self._epoch_ends_at = NEVER
        self._epoch_ended = True
        self._connected_tasks: set[int] = set()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def stop_new_epochs(self) -> None:
        """Begin no further epoch."""
        self._no_new_epochs = True

    def end_epoch(self) -> None:
        """Have the next epoch begin now."""
        self._loop.call_soon(self._end_epoch)

    def set_task_count(self, tasks: int) -> None:
        """Have so many tasks from the next epoch on; that begins at once if it makes a change."""
        self._loop.call_soon(partial(self._set_task_count, tasks))

    @property
    def is_idle(self) -> bool:
        """Whether the query has asked for more and was told that there is no more."""
        return self._no_new_epochs and self._idle.is_set()

    @property
    def epoch(self) -> int:
        """The number of the last epoch that began; 0 before the first."""
        return self._epoch

    def tasks_without_slot(self) -> list[int]:
        """The tasks of this epoch that should have come long ago: Spark has no slot for them."""
        if self._epoch_ended or time.monotonic() - self._epoch_requested_at < SLOT_TIMEOUT_S:
            return []
        return [task for task in range(self._task_count) if task not in self._connected_tasks]

    def failure(self) -> Exception | None:
        """Why it serves no longer, if that was not asked for."""
        return self._failure

    def close(self) -> None:
        """Send everybody away and stop listening."""
        self._closing = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        channels: list[AuthenticatedConnection | Handshake | Acceptor] = [
            *self._connections,
            *self._handshakes,
            self._acceptor,
        ]
        for channel in channels:
            channel.close()
        self._loop.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        self._loop.register(self._acceptor, self._on_acceptor_error)
        try:
            while not self._closing:
                self._loop.run_once(POLL_INTERVAL_S)
                self._check_deadlines(time.monotonic())
        except Exception as error:
            log.exception("The control channel is closed")
            self._failure = error

    def _on_acceptor_error(self, error: MirrorError) -> None:
        raise error

    def _check_deadlines(self, now: float) -> None:
        if now >= self._epoch_ends_at:
            self._end_epoch()
        for stranger in [s for s in self._handshakes if now > s.deadline]:
            self._reject(stranger, None)

    def _set_task_count(self, tasks: int) -> None:
        if tasks == self._task_count:
            return
        log.info("From the next epoch on there are %d tasks instead of %d", tasks, self._task_count)
        self._task_count = tasks
        self._end_epoch()

    def _end_epoch(self) -> None:
        if not self._epoch_ended:
            self._epoch_ended = True
            self._conductor.end_epoch()

    def _on_accept(self, sock: socket.socket) -> None:
        stranger = Handshake(
            sock,
            self.endpoint.secret,
            time.monotonic() + HANDSHAKE_TIMEOUT_S,
            self._on_authenticated,
        )
        self._handshakes.add(stranger)
        self._loop.register(stranger, partial(self._reject, stranger))

    def _reject(self, stranger: Handshake, error: MirrorError | None) -> None:
        log.warning("Turned away: %s", error or "a newcomer on the control channel said nothing")
        self._loop.unregister(stranger)
        self._handshakes.discard(stranger)
        stranger.close()

    def _on_authenticated(
        self, stranger: Handshake, sock: socket.socket, seals: CipherPair
    ) -> None:
        self._loop.unregister(stranger)
        self._handshakes.discard(stranger)
        guest = AuthenticatedConnection(sock, self._on_message, seals)
        self._connections.add(guest)
        self._loop.register(guest, partial(self._on_connection_lost, guest))

    def _on_connection_lost(self, guest: AuthenticatedConnection, _error: MirrorError) -> None:
        self._connections.discard(guest)
        guest.close()
        if guest.hello:
            self._conductor.on_task_left(guest.hello)

    def _on_message(self, guest: AuthenticatedConnection, message: ControlMessage) -> None:
        match message:
            case RequestEpoch():
                guest.send(self._on_next_epoch(message))
            case Hello() if guest.hello is None:
                guest.hello = message
                self._on_hello(guest, message)
            case _ if guest.hello is None:
                log.warning("%s before a hello", type(message).__name__)
            case _:
                if isinstance(message, ProgressReport):
                    # Not before everything that came with it was heard: it may be the last.
                    self._enqueue_send(guest, ReportAck())
                self._conductor.on_task_message(guest.hello, message)

    def _on_hello(self, guest: AuthenticatedConnection, hello: Hello) -> None:
        if not self._connected_tasks:
            now = time.monotonic()
            self._epoch_ends_at = now + self._epoch_s
            log.info(
                "Epoch %d: a task came after %.1f s", self._epoch, now - self._epoch_requested_at
            )
        self._connected_tasks.add(hello.task)
        if self._epoch == 1 and len(self._connected_tasks) == self._task_count:
            self._epoch_ends_at = min(self._epoch_ends_at, time.monotonic() + self._first_epoch_s)
        self._conductor.on_task_joined(hello, partial(self._enqueue_send, guest))
        if self._epoch_ended:
            # It came too late (another attempt had failed): it must not hold up the next epoch.
            self._conductor.end_epoch()

    def _on_next_epoch(self, question: RequestEpoch) -> EpochAssignment:
        if self._no_new_epochs or not self._task_count:
            self._epoch_ended = True
            self._idle.set()
            return EpochAssignment(number=question.finished_epoch, tasks=self._task_count)
        self._epoch = question.finished_epoch + 1
        self._epoch_requested_at, self._epoch_ends_at = time.monotonic(), NEVER
        self._epoch_ended, self._connected_tasks = False, set()
        self._idle.clear()
        return EpochAssignment(number=self._epoch, tasks=self._task_count)

    def _enqueue_send(self, guest: AuthenticatedConnection, message: ControlMessage) -> None:
        self._loop.call_soon(partial(self._send, guest, message))

    def _send(self, guest: AuthenticatedConnection, message: ControlMessage) -> None:
        if guest in self._connections:
            self._loop.run_guarded(guest, partial(guest.send, message))


def _without_brackets(host: str) -> str:
    """A host without the brackets that Spark writes around an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise DriverLost(f"the control channel cannot listen at {host}:{port}: {error}") from error
