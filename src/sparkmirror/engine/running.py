"""Spark at work: the session, the control server and the query of one driver, in one thread.

Starting takes seconds and is done beside the conductor's own start; the stream begins when both are
ready. Whatever goes wrong ends the thread and is kept in `failure`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.conducting import Conducting
from sparkmirror.engine.conf import (
    LOOPBACK,
    Surroundings,
    environment,
    is_local,
    lacking,
    master_of,
    settings,
    too_few_slots,
)
from sparkmirror.engine.control import ControlServer
from sparkmirror.engine.home import demand_java, quick_home
from sparkmirror.engine.query import Query
from sparkmirror.errors import DriverLost

log = logging.getLogger(__name__)

LOOK_EVERY_S = 2


class _Watch:
    """Tells the log how long each step took."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def lap(self, what: str) -> None:
        now = time.monotonic()
        log.info("%s after %.1f s", what, now - self._since)
        self._since = now


class Running:
    """Starts Spark and keeps it running. Everything here may be asked from any thread."""

    def __init__(self, assignment: Assignment, conductor: Conducting, directory: Path) -> None:
        self.conductor_is_ready = threading.Event()
        self.is_streaming = False
        self.slots = 0
        """How many tasks Spark can run at once; 0 until that is known."""
        self.application_id = ""
        self.web_ui = ""
        self._assignment = assignment
        self._conductor = conductor
        self._directory = directory
        self._query: Query | None = None
        self._server: ControlServer | None = None
        self._is_rehearsed = False
        self._closing = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="spark", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def epoch(self) -> int:
        """The epoch that is under way."""
        return self._server.epoch if self._server else 0

    def trouble(self) -> str:
        """What is wrong with Spark that does not end it, in a sentence."""
        tasks = len(self._assignment.job.tasks)
        waiting = self._server.waiting() if self._server else []
        if waiting:
            return lacking(tasks, tasks - len(waiting))
        ended_badly = self._query.trouble if self._query else ""
        return ended_badly or too_few_slots(self._assignment)

    def finish(self) -> None:
        """Let no further epoch begin."""
        if self._server:
            self._server.finish()

    @property
    def is_resting(self) -> bool:
        """Whether the last epoch is over and its receipts have landed."""
        return self._server is not None and self._server.is_resting

    def failure(self) -> Exception | None:
        """Why it has ended by itself, if it has."""
        return self._failure or (self._server.failure() if self._server else None)

    def close(self) -> None:
        """End the stream, the server and Spark."""
        self._closing = True
        self.conductor_is_ready.set()
        try:
            if self._query:
                self._query.end_stream()
            if self._server:
                self._server.close()
            if self._query:
                self._query.close()
        except DriverLost as error:
            log.warning("%s", error)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            query, server = self._begin()
            while self.is_streaming and not query.wait(LOOK_EVERY_S):
                self.slots = query.slots()
                self._rehearse(query, server)
        except Exception as error:
            if not self._closing:
                log.exception("Spark has ended")
                self._failure = error

    def _begin(self) -> tuple[Query, ControlServer]:
        """Start everything; the stream only if we are not to end already."""
        assignment, post = self._assignment, self._directory / "post.json"
        watch = _Watch()
        self._query = query = Query(self._settle())
        self.application_id, self.web_ui = query.application_id, query.web_ui
        watch.lap("Spark started")
        self._server = server = self._open_server(query)
        server.post.write(post)
        server.start()
        connector = assignment.job.connector
        rows = query.prepare(
            {"flow": assignment.flow, "connector": connector, "post": str(post)},
        )
        watch.lap("The source was made known")
        self.conductor_is_ready.wait()
        watch.lap("The conductor was ready")
        if not self._closing:
            query.start(rows, connector, assignment.receipts, self._directory / "checkpoint")
            watch.lap("The query began")
            self.is_streaming = True
        return query, server

    def _settle(self) -> dict[str, str]:
        """Prepare this process for Spark; returns Spark's settings."""
        demand_java(os.environ)
        home = quick_home(os.environ) if is_local(master_of(self._assignment)) else None
        around = Surroundings(
            directory=self._directory,
            home=home,
            has_archive=home is not None and home.archive.is_file(),
        )
        os.environ.update(environment(self._assignment, around, os.environ))
        return settings(self._assignment, around)

    def _open_server(self, query: Query) -> ControlServer:
        """Listen where the executors look for the driver anyway."""
        host = query.setting("spark.driver.host")
        bind = query.setting("spark.driver.bindAddress") or host
        if is_local(master_of(self._assignment)):
            host = bind = LOOPBACK
        return ControlServer(
            self._conductor,
            tasks=len(self._assignment.job.tasks),
            epoch_s=self._assignment.epoch_s,
            bind=bind,
            host=host,
        )

    def _rehearse(self, query: Query, server: ControlServer) -> None:
        """Once, if there is a slot to spare, do what the end of an epoch takes: it is slow then."""
        has_room = self.slots > len(self._assignment.job.tasks)
        if self._is_rehearsed or not has_room or not server.is_well_under_way:
            return
        self._is_rehearsed = True
        try:
            query.rehearse_landing(self._directory / "rehearsal")
        except DriverLost as error:
            log.warning("%s", error)
