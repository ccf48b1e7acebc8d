"""Spark at work: the session, the control server and the query of one driver, in one thread.

Starting takes seconds and is done beside the conductor's own start; the stream begins when both are
ready. Whatever goes wrong ends the thread and is kept in `failure`.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from pathlib import Path

from sparkmirror.engine.assignment import Assignment
from sparkmirror.engine.conducting import Conducting
from sparkmirror.engine.conf import (
    LOOPBACK,
    Surroundings,
    control_port,
    environment,
    is_local,
    lacking,
    master_of,
    settings,
    too_few_slots,
)
from sparkmirror.engine.control import ControlServer
from sparkmirror.engine.home import demand_java, quick_home, stand_in
from sparkmirror.engine.query import Query
from sparkmirror.engine.receipts import Row, lost_row
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

    def end_epoch(self) -> None:
        """Have every task start anew."""
        if self._server:
            self._server.end_epoch()

    def replan(self, assignment: Assignment) -> None:
        """Go on with another number of tasks."""
        self._assignment = assignment
        if self._server:
            self._server.set_tasks(len(assignment.job.tasks))

    def finish(self) -> None:
        """Let no further epoch begin."""
        if self._server:
            self._server.finish()
        if self._query:
            self._query.hurry()

    @property
    def is_resting(self) -> bool:
        """Whether the last epoch is over and its receipts have landed."""
        if self._server is None or self._query is None:
            return False
        return self._server.is_resting and not self._query.unwritten

    @property
    def unwritten(self) -> int:
        """How many receipts are not written yet."""
        return self._query.unwritten if self._query else 0

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
            query = self._begin()
            while self.is_streaming and not query.wait(LOOK_EVERY_S):
                self.slots = query.slots()
        except Exception as error:
            if not self._closing:
                log.exception("Spark has ended")
                self._failure = error

    def _begin(self) -> Query:
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
            checkpoint = self._directory / "checkpoint"
            query.start(rows, connector, assignment.receipts, checkpoint, self._close_books)
            watch.lap("The query began")
            self.is_streaming = True
        return query

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
        stand_in(os.environ["PYSPARK_PYTHON"], Path.cwd(), Path(sys.prefix))
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
            port=control_port(self._assignment),
        )

    def _close_books(self, landed: bool) -> list[Row]:
        """Between two epochs: what the one that is over still owes."""
        unclaimed = self._conductor.close_books(self.epoch, landed=landed)
        return [lost_row(self._assignment.flow, one) for one in unclaimed]
