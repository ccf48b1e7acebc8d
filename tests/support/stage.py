"""A stage: a conductor and its tasks as processes, without Spark, for tests that kill things."""

from __future__ import annotations

import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sparkmirror.copy.conductor import Conductor
from sparkmirror.copy.job import Job
from sparkmirror.copy.ledger import Ledger
from sparkmirror.copy.link import Link, LinkLost, admit
from sparkmirror.copy.messages import Beat, Hello, Message, Report
from sparkmirror.copy.run_keeping import RunStore
from sparkmirror.copy.seal import Seals
from sparkmirror.copy.snapshot import Event, Snapshot
from sparkmirror.errors import MirrorError
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
SECRET = "a secret for the stage"
PATIENCE_S = 120.0
"""How long anything may take on a slow computer."""
ADMITTED_WITHIN_S = 30.0
NOTICED_S = 2.0
"""How long somebody is silent before he is given up, where that is wanted."""


class _Guest:
    """One task connection, as the server sees it."""

    def __init__(self, sock: socket.socket, conductor: Conductor, seals: Seals) -> None:
        self.hello: Hello | None = None
        self._conductor = conductor
        self._lock = threading.Lock()
        self.link = Link(sock, self._heard, seals)

    def send(self, message: Message) -> None:
        with self._lock:
            if not self.link.is_closed:
                try:
                    self.link.send(message)
                except LinkLost:
                    return

    def _heard(self, message: Message) -> None:
        if isinstance(message, Hello):
            self.hello = message
            self._conductor.joined(message, self.send)
        elif self.hello:
            if isinstance(message, Report):
                self.send(Beat())
            self._conductor.said(self.hello, message)


class Stage:
    """Runs one job: `with Stage(job, ledger) as stage:`; tasks are started again when they die."""

    def __init__(self, job: Job, ledger: Ledger, runs: RunStore | None = None) -> None:
        self.job = job
        self.conductor = Conductor(job, ledger, runs)
        self.tasks: dict[int, subprocess.Popen[bytes]] = {}
        self.replaced: list[subprocess.Popen[bytes]] = []
        """Attempts that another one was started beside, whether they live or not."""
        self.restarts = True
        self._attempts: dict[int, int] = {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self._guests: list[_Guest] = []
        self._closing = False
        self._threads = [
            threading.Thread(target=self._serve, daemon=True),
            threading.Thread(target=self._look_after, daemon=True),
        ]

    def __enter__(self) -> Stage:
        self._start_conductor()
        for task in range(len(self.job.tasks)):
            self._start(task)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        for process in (*self.tasks.values(), *self.replaced):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for thread in self._threads:
            thread.join(timeout=10)
        self.conductor.stop()
        self._server.close()
        for guest in self._guests:
            guest.link.close()

    @property
    def snapshot(self) -> Snapshot:
        failure = self.conductor.failure()
        if failure:
            raise failure
        return self.conductor.snapshot()

    def wait(
        self, reason: str, condition: Callable[[Snapshot], bool], timeout_s: float = PATIENCE_S
    ) -> None:
        """Wait until the snapshot says so."""
        wait_until(lambda: condition(self.snapshot), reason, timeout_s)

    def wait_until_caught_up(self, ends: dict[str, int], timeout_s: float = PATIENCE_S) -> None:
        """Wait until every partition has passed its end."""

        def passed(snapshot: Snapshot) -> bool:
            return all(snapshot.partitions[key].position >= end for key, end in ends.items())

        self.wait("everything to be copied", passed, timeout_s)

    def wait_until_all_copy(self) -> None:
        """Wait until every task has copied something: one may be seconds ahead of another."""

        def all_copied(snapshot: Snapshot) -> bool:
            busy = {view.task for view in snapshot.partitions.values() if view.records}
            return len(busy) == len(self.job.tasks)

        self.wait("every task to copy", all_copied)

    def wait_for_more(self) -> None:
        """Wait until something was copied from now on."""
        before = self.snapshot.records
        self.wait("more to be copied", lambda seen: seen.records > before)

    def wait_for_attempts(self, number: int, timeout_s: float = PATIENCE_S) -> None:
        """Wait until the attempts of all tasks have at least this number; the first one is 0."""
        wait_until(lambda: min(self._attempts.values()) >= number, f"attempts {number}", timeout_s)

    def drain(self, timeout_s: float = PATIENCE_S) -> None:
        """Have everything given back."""
        self.restarts = False
        self.conductor.drain()
        wait_until(self.conductor.is_drained, "the tasks to drain", timeout_s)

    def kill(self, task: int) -> None:
        """Kill a task without a word."""
        self.tasks[task].kill()

    def freeze(self, task: int) -> None:
        """Let a task sleep: it keeps its connections, and says nothing."""
        self.tasks[task].send_signal(signal.SIGSTOP)

    def thaw(self, task: int) -> None:
        """Wake a task that sleeps."""
        self.tasks[task].send_signal(signal.SIGCONT)

    def give_up_silent(self) -> None:
        """Have whoever sleeps given up now; others have as long as before to be heard of."""
        self.conductor.replan(replace(self.conductor.job, silence_s=NOTICED_S))
        self.wait_for_event("takeover")
        self.conductor.replan(replace(self.conductor.job, silence_s=self.job.silence_s))

    def start_beside(self, task: int) -> subprocess.Popen[bytes]:
        """Start another attempt of a task; the one before is returned as it is."""
        before = self.tasks[task]
        self.replaced.append(before)
        self._start(task)
        return before

    def wait_for_event(self, kind: str, times: int = 1) -> Event:
        """Wait until something was told so many times, and return what it was at first."""
        self.wait(kind, lambda seen: sum(one.kind == kind for one in seen.events) >= times)
        return next(one for one in self.snapshot.events if one.kind == kind)

    def _start_conductor(self) -> None:
        """Try until both clusters answer, as a driver does: the first time they have a second."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.conductor.start()
            except MirrorError as error:
                if not error.retriable or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def _start(self, task: int) -> None:
        attempt = self._attempts[task] = self._attempts.get(task, -1) + 1
        port = self._server.getsockname()[1]
        self.tasks[task] = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.support.copy_task"),
                *("127.0.0.1", str(port), SECRET, str(task), str(attempt)),
            ],
            cwd=ROOT,
        )

    def _look_after(self) -> None:
        while not self._closing:
            for task, process in list(self.tasks.items()):
                if process.poll() is not None and self.restarts and not self._closing:
                    self._start(task)
            threading.Event().wait(0.1)

    def _serve(self) -> None:
        self._server.setblocking(False)
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ, None)
            while not self._closing:
                for key, _ in selector.select(0.1):
                    if key.data is None:
                        self._welcome(selector)
                    else:
                        self._read(selector, key.data)

    def _welcome(self, selector: selectors.BaseSelector) -> None:
        sock, _ = self._server.accept()
        sock.settimeout(ADMITTED_WITHIN_S)
        try:
            seals = admit(sock, SECRET.encode())
        except (LinkLost, OSError):  # killed while it introduced itself
            sock.close()
            return
        guest = _Guest(sock, self.conductor, seals)
        self._guests.append(guest)
        selector.register(guest.link, selectors.EVENT_READ, guest)

    def _read(self, selector: selectors.BaseSelector, guest: _Guest) -> None:
        try:
            guest.link.on_readable()
        except LinkLost:
            selector.unregister(guest.link)
            if guest.hello:
                self.conductor.left(guest.hello)
