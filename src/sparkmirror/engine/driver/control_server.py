"""The control server: the driver's end of all control connections, in one thread.

Accepts clients that know the secret, acknowledges each report at once, passes all other messages
between tasks and conductor, and tells Spark's planner which epoch to run. It also ends epochs:
`epoch_s` after the first task of an epoch has connected, all its tasks are drained, they return
their receipts, and the planner requests the next epoch.

    RequestEpoch(n) ──▶ EpochAssignment(n+1) ─ tasks copy ─ epoch_s ──▶ Drain ──▶ RequestEpoch(n+1)
    RequestEpoch(n) ── after stop_new_epochs() ──▶ EpochAssignment(n): nothing to run
"""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from functools import partial

from sparkmirror.copy.control.handshake import (
    ConnectionCipher,
    ControlProtocol,
    driver_handshake,
)
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
from sparkmirror.engine.driver.pending_handshakes import PendingHandshakes, RejectionLog
from sparkmirror.errors import DriverLost, MirrorError

log = logging.getLogger(__name__)

NEVER = float("inf")
POLL_INTERVAL_S = 0.1
HANDSHAKE_TIMEOUT_S = 5.0
SECRET_BYTES = 32
FIRST_EPOCH_S = 15.0
"""Spark is slow whenever it does something for the first time. A short first epoch makes the first
change of epochs happen soon after the start, not in the middle of the day."""
SLOT_TIMEOUT_S = 20.0
"""A task that is not connected so long after its epoch began is waiting for a Spark slot."""


class ControlServer:
    """Serves tasks and Spark's planner. `start()` it, `close()` it; `endpoint` is its address."""

    def __init__(
        self,
        conductor: ConductorApi,
        *,
        tasks: int,
        epoch_s: float,
        protocol: ControlProtocol,
        bind: str,
        host: str = "",
        port: int = 0,
        first_epoch_s: float = FIRST_EPOCH_S,
    ) -> None:
        """Listen at `bind`; tasks connect to `host` if that is another name for it."""
        self._conductor = conductor
        self._task_count = tasks
        self._epoch_s = epoch_s
        self._first_epoch_s = first_epoch_s
        listener = _listen(_without_brackets(bind), port)
        self.endpoint = ControlEndpoint(
            host=_without_brackets(host or bind),
            port=listener.getsockname()[1],
            protocol=protocol,
            secret=secrets.token_hex(SECRET_BYTES).encode(),
        )
        self._loop = EventLoop()
        self._acceptor = Acceptor(listener, self._on_accept)
        self._handshakes = PendingHandshakes()
        self._rejection_log = RejectionLog()
        self._connections: set[AuthenticatedConnection] = set()
        self._log_levels: Mapping[str, int] = {}
        self._closing = False
        self._no_new_epochs = False
        self._idle = threading.Event()
        self._epoch = 0
        self._epoch_requested_at = 0.0
        self._epoch_ends_at = NEVER
        self._epoch_ended = True
        self._connected_tasks: set[int] = set()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="control-server", daemon=True)

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        log.info(
            "Control server listens at %s:%d and speaks %s",
            *self.endpoint.address,
            self.endpoint.protocol,
        )
        self._thread.start()

    def stop_new_epochs(self) -> None:
        """Answer every further request for an epoch with: none."""
        self._no_new_epochs = True

    def end_epoch(self) -> None:
        """End the running epoch now; the next one follows."""
        self._loop.call_soon(self._end_epoch)

    def set_task_count(self, tasks: int) -> None:
        """Run so many tasks from the next epoch on; a change ends the running epoch."""
        self._loop.call_soon(partial(self._set_task_count, tasks))

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Have tasks set these levels from the next epoch on."""
        self._log_levels = {**self._log_levels, **levels}

    @property
    def is_idle(self) -> bool:
        """Whether the last epoch is over and the planner knows that no other follows."""
        return self._no_new_epochs and self._idle.is_set()

    @property
    def epoch(self) -> int:
        """The number of the epoch that began last; 0 before the first."""
        return self._epoch

    def tasks_without_slot(self) -> list[int]:
        """Tasks that should have connected long ago: Spark has no slot for them."""
        if self._epoch_ended or time.monotonic() - self._epoch_requested_at < SLOT_TIMEOUT_S:
            return []
        return [task for task in range(self._task_count) if task not in self._connected_tasks]

    def failure(self) -> Exception | None:
        """The error that has ended the thread, if there was one."""
        return self._failure

    def close(self) -> None:
        """Stop the thread and close all connections."""
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
            log.exception("The control server has failed; the driver ends")
            self._failure = error

    def _on_acceptor_error(self, error: MirrorError) -> None:
        raise error

    def _check_deadlines(self, now: float) -> None:
        if now >= self._epoch_ends_at:
            self._end_epoch()
        for handshake in self._handshakes.overdue(now):
            self._reject(handshake, f"no handshake within {HANDSHAKE_TIMEOUT_S:.0f} s")

    def _set_task_count(self, tasks: int) -> None:
        if tasks == self._task_count:
            return
        log.info("The next epoch has %d tasks instead of %d", tasks, self._task_count)
        self._task_count = tasks
        self._end_epoch()

    def _end_epoch(self) -> None:
        if not self._epoch_ended:
            self._epoch_ended = True
            self._conductor.end_epoch()

    def _on_accept(self, sock: socket.socket) -> None:
        handshake = Handshake(
            sock,
            driver_handshake(self.endpoint.protocol, self.endpoint.secret),
            time.monotonic() + HANDSHAKE_TIMEOUT_S,
            self._on_authenticated,
        )
        self._loop.register(handshake, lambda error: self._reject(handshake, str(error)))
        oldest = self._handshakes.add(handshake)
        if oldest is not None:
            self._reject(oldest, "too many connections wait for their handshake")

    def _reject(self, handshake: Handshake, reason: str) -> None:
        self._rejection_log.write(handshake.peer, reason, time.monotonic())
        self._loop.unregister(handshake)
        self._handshakes.discard(handshake)
        handshake.close()

    def _on_authenticated(
        self, handshake: Handshake, sock: socket.socket, cipher: ConnectionCipher
    ) -> None:
        self._loop.unregister(handshake)
        self._handshakes.discard(handshake)
        connection = AuthenticatedConnection(sock, self._on_message, cipher)
        self._connections.add(connection)
        self._loop.register(connection, partial(self._on_connection_lost, connection))

    def _on_connection_lost(self, connection: AuthenticatedConnection, _error: MirrorError) -> None:
        self._connections.discard(connection)
        connection.close()
        if connection.hello:
            self._conductor.on_task_left(connection.hello)

    def _on_message(self, connection: AuthenticatedConnection, message: ControlMessage) -> None:
        match message:
            case RequestEpoch():
                connection.send(self._on_next_epoch(message))
            case Hello() if connection.hello is None:
                connection.hello = message
                self._on_hello(connection, message)
            case _ if connection.hello is None:
                log.warning("Ignored %s received before Hello", type(message).__name__)
            case _:
                if isinstance(message, ProgressReport):
                    # Sent after all messages that arrived with the report are processed: a failed
                    # send closes the connection, and the last messages must not get lost.
                    self._enqueue_send(connection, ReportAck())
                self._conductor.on_task_message(connection.hello, message)

    def _on_hello(self, connection: AuthenticatedConnection, hello: Hello) -> None:
        if not self._connected_tasks:
            now = time.monotonic()
            self._epoch_ends_at = now + self._epoch_s
            log.info(
                "Epoch %d: first task connected after %.1f s",
                self._epoch,
                now - self._epoch_requested_at,
            )
        self._connected_tasks.add(hello.task)
        if self._epoch == 1 and len(self._connected_tasks) == self._task_count:
            self._epoch_ends_at = min(self._epoch_ends_at, time.monotonic() + self._first_epoch_s)
        self._conductor.on_task_joined(hello, partial(self._enqueue_send, connection))
        if self._epoch_ended:
            # A second attempt, after the end of the epoch: drain it, or the next epoch would wait.
            self._conductor.end_epoch()

    def _on_next_epoch(self, request: RequestEpoch) -> EpochAssignment:
        if self._no_new_epochs or not self._task_count:
            self._epoch_ended = True
            self._idle.set()
            return self._assignment(request.finished_epoch)
        self._epoch = request.finished_epoch + 1
        self._epoch_requested_at, self._epoch_ends_at = time.monotonic(), NEVER
        self._epoch_ended, self._connected_tasks = False, set()
        self._idle.clear()
        return self._assignment(self._epoch)

    def _assignment(self, number: int) -> EpochAssignment:
        return EpochAssignment(
            number=number, tasks=self._task_count, log_levels=dict(self._log_levels)
        )

    def _enqueue_send(self, connection: AuthenticatedConnection, message: ControlMessage) -> None:
        self._loop.call_soon(partial(self._send, connection, message))

    def _send(self, connection: AuthenticatedConnection, message: ControlMessage) -> None:
        if connection in self._connections:
            self._loop.run_guarded(connection, partial(connection.send, message))


def _without_brackets(host: str) -> str:
    """The host without the brackets that Spark writes around an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise DriverLost(f"the control server cannot listen at {host}:{port}: {error}") from error
