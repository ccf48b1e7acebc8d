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

from sparkmirror.copy.loop import Loop
from sparkmirror.copy.messages import Beat, Epoch, Hello, Message, NextEpoch, Report
from sparkmirror.copy.seal import Seals
from sparkmirror.engine.conducting import Conducting
from sparkmirror.engine.guests import Door, Guest, Stranger
from sparkmirror.engine.post import Post
from sparkmirror.errors import DriverLost, MirrorError

log = logging.getLogger(__name__)

NEVER = float("inf")
TURN_S = 0.1
SECRET_WITHIN_S = 5.0
SECRET_BYTES = 32
FIRST_EPOCH_S = 15.0
"""Spark is slow whenever it does something for the first time. So that the end of an epoch is not
in the middle of the day, the first one is short, once all its tasks are there."""
SLOTS_WITHIN_S = 20.0
"""A task that has not come so long after its epoch began is waiting for a slot."""


class ControlServer:
    """Serves tasks and the query. Use: `start()`, then `post` is where to find it; `close()`."""

    def __init__(
        self,
        conductor: Conducting,
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
        self._tasks = tasks
        self._epoch_s = epoch_s
        self._first_epoch_s = first_epoch_s
        listener = _listen(_bare(bind), port)
        self.post = Post(
            host=_bare(host or bind),
            port=listener.getsockname()[1],
            secret=secrets.token_hex(SECRET_BYTES).encode(),
        )
        self._loop = Loop()
        self._door = Door(listener, self._knocked)
        self._strangers: set[Stranger] = set()
        self._guests: set[Guest] = set()
        self._closing = False
        self._finishing = False
        self._resting = threading.Event()
        self._epoch = 0
        self._asked_at = 0.0
        self._end_at = NEVER
        self._is_ended = True
        self._came: set[int] = set()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    # -- from any thread ------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def finish(self) -> None:
        """Begin no further epoch."""
        self._finishing = True

    def end_epoch(self) -> None:
        """Have the next epoch begin now."""
        self._loop.soon(self._end_epoch)

    def set_tasks(self, tasks: int) -> None:
        """Have so many tasks from the next epoch on; that begins at once if it makes a change."""
        self._loop.soon(partial(self._set_tasks, tasks))

    @property
    def is_resting(self) -> bool:
        """Whether the query has asked for more and was told that there is no more."""
        return self._finishing and self._resting.is_set()

    @property
    def epoch(self) -> int:
        """The number of the last epoch that began; 0 before the first."""
        return self._epoch

    def waiting(self) -> list[int]:
        """The tasks of this epoch that should have come long ago: Spark has no slot for them."""
        if self._is_ended or time.monotonic() - self._asked_at < SLOTS_WITHIN_S:
            return []
        return [task for task in range(self._tasks) if task not in self._came]

    def failure(self) -> Exception | None:
        """Why it serves no longer, if that was not asked for."""
        return self._failure

    def close(self) -> None:
        """Send everybody away and stop listening."""
        self._closing = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        channels: list[Guest | Stranger | Door] = [*self._guests, *self._strangers, self._door]
        for channel in channels:
            channel.close()
        self._loop.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        self._loop.watch(self._door, self._door_broken)
        try:
            while not self._closing:
                self._loop.turn(TURN_S)
                self._keep_time(time.monotonic())
        except Exception as error:
            log.exception("The control channel is closed")
            self._failure = error

    def _door_broken(self, error: MirrorError) -> None:
        raise error

    def _keep_time(self, now: float) -> None:
        if now >= self._end_at:
            self._end_epoch()
        for stranger in [s for s in self._strangers if now > s.deadline]:
            self._turn_away(stranger, None)

    def _set_tasks(self, tasks: int) -> None:
        if tasks == self._tasks:
            return
        log.info("From the next epoch on there are %d tasks instead of %d", tasks, self._tasks)
        self._tasks = tasks
        self._end_epoch()

    def _end_epoch(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._conductor.end_epoch()

    def _knocked(self, sock: socket.socket) -> None:
        stranger = Stranger(
            sock, self.post.secret, time.monotonic() + SECRET_WITHIN_S, self._admitted
        )
        self._strangers.add(stranger)
        self._loop.watch(stranger, partial(self._turn_away, stranger))

    def _turn_away(self, stranger: Stranger, error: MirrorError | None) -> None:
        log.warning("Turned away: %s", error or "a newcomer on the control channel said nothing")
        self._loop.forget(stranger)
        self._strangers.discard(stranger)
        stranger.close()

    def _admitted(self, stranger: Stranger, sock: socket.socket, seals: Seals) -> None:
        self._loop.forget(stranger)
        self._strangers.discard(stranger)
        guest = Guest(sock, self._heard, seals)
        self._guests.add(guest)
        self._loop.watch(guest, partial(self._lost, guest))

    def _lost(self, guest: Guest, _error: MirrorError) -> None:
        self._guests.discard(guest)
        guest.close()
        if guest.hello:
            self._conductor.left(guest.hello)

    def _heard(self, guest: Guest, message: Message) -> None:
        match message:
            case NextEpoch():
                guest.send(self._next_epoch(message))
            case Hello() if guest.hello is None:
                guest.hello = message
                self._welcome(guest, message)
            case _ if guest.hello is None:
                log.warning("%s before a hello", type(message).__name__)
            case _:
                if isinstance(message, Report):
                    # Not before everything that came with it was heard: it may be the last.
                    self._send_soon(guest, Beat())
                self._conductor.said(guest.hello, message)

    def _welcome(self, guest: Guest, hello: Hello) -> None:
        if not self._came:
            now = time.monotonic()
            self._end_at = now + self._epoch_s
            log.info("Epoch %d: a task came after %.1f s", self._epoch, now - self._asked_at)
        self._came.add(hello.task)
        if self._epoch == 1 and len(self._came) == self._tasks:
            self._end_at = min(self._end_at, time.monotonic() + self._first_epoch_s)
        self._conductor.joined(hello, partial(self._send_soon, guest))
        if self._is_ended:
            # It came too late (another attempt had failed): it must not hold up the next epoch.
            self._conductor.end_epoch()

    def _next_epoch(self, question: NextEpoch) -> Epoch:
        if self._finishing or not self._tasks:
            self._is_ended = True
            self._resting.set()
            return Epoch(number=question.after, tasks=self._tasks)
        self._epoch = question.after + 1
        self._asked_at, self._end_at = time.monotonic(), NEVER
        self._is_ended, self._came = False, set()
        self._resting.clear()
        return Epoch(number=self._epoch, tasks=self._tasks)

    def _send_soon(self, guest: Guest, message: Message) -> None:
        self._loop.soon(partial(self._send, guest, message))

    def _send(self, guest: Guest, message: Message) -> None:
        if guest in self._guests:
            self._loop.guard(guest, partial(guest.send, message))


def _bare(host: str) -> str:
    """A host without the brackets that Spark writes around an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise DriverLost(f"the control channel cannot listen at {host}:{port}: {error}") from error
