"""A worker or a dedicated mirror as a process: its log, its REST API, its Spark drivers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sparkmirror.lab.properties_file import write_properties
from tests.support.processes import RunningProcess, all_processes, session_processes
from tests.support.rest.rest_client import JSON_HEADERS, RestClient, RestResponse
from tests.support.waiting import wait_until

SCRIPTS = Path(__file__).parents[3] / "bin"
SPARKMIRROR = (sys.executable, "-c", "from sparkmirror.cli.main import main; main()")
DRIVER = "sparkmirror.engine.driver.driver_main"
SPARK_TIMEOUT_S = 400.0
"""Enough for Spark on a busy computer."""
_LISTENING = re.compile(r"REST server listening at (http://[^\s,]+?)/?[,\s]")


class MirrorProcess:
    """A worker or a dedicated mirror that runs until it is stopped."""

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        environ: Mapping[str, str] | None = None,
        log_name: str = "log",
    ) -> None:
        """Start it. It writes only below `directory`."""
        self.log = directory / log_name
        self.authorization = ""
        """The Authorization header of the requests to its REST API; empty: none."""
        self.started_at = time.monotonic()
        self._address = ""
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={**(environ or os.environ), "XDG_STATE_HOME": str(directory / "state")},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """Its stdout and stderr so far."""
        return self.log.read_text("utf-8", errors="replace")

    @property
    def address(self) -> str:
        """The URL of its REST API; waits until the API listens. The process must run."""
        if not self._address:
            self._address = self._wait_for_address()
        self._assert_running()
        return self._address

    # -- REST -----------------------------------------------------------------------------------

    def request(self, method: str, path: str, body: Any = None) -> RestResponse:
        """Call its REST API; waits up to SPARK_TIMEOUT_S for the answer."""
        client = RestClient(self.address, timeout_s=SPARK_TIMEOUT_S)
        try:
            headers = {} if body is None else dict(JSON_HEADERS)
            if self.authorization:
                headers["Authorization"] = self.authorization
            return client.request(method, path, None if body is None else json.dumps(body), headers)
        finally:
            client.close()

    def call_json(self, method: str, path: str, body: Any = None) -> Any:
        """Call its REST API, which must succeed; return the JSON of the answer."""
        answer = self.request(method, path, body)
        assert answer.status < 400, f"{method} {path}: {answer.status} {answer.content!r}"
        return answer.json if answer.content else None

    def get_json(self, path: str) -> Any:
        return self.call_json("GET", path)

    def states(self, connector: str) -> tuple[str, list[str]]:
        """The states of a connector and of its tasks."""
        answer = self.request("GET", f"{connector_path(connector)}/status")
        if answer.status != 200:
            return "", []
        status = answer.json
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

    def wait_for_states(
        self, connector: str, state: str, *tasks: str, timeout_s: float = SPARK_TIMEOUT_S
    ) -> None:
        """Wait until a connector and its tasks are in these states."""
        try:
            wait_until(lambda: self.states(connector) == (state, list(tasks)), "", timeout_s)
        except AssertionError:
            status = self.request("GET", f"{connector_path(connector)}/status").content.decode()
            raise AssertionError(f"{connector} is not {state} {tasks}: {status}") from None

    # -- processes ------------------------------------------------------------------------------

    def drivers(self) -> list[RunningProcess]:
        """Its Spark drivers."""
        return [one for one in self.processes() if one.parent == self.pid and DRIVER in one.command]

    def processes(self) -> list[RunningProcess]:
        """The process itself, its children, and all processes of their sessions."""
        every = all_processes()
        sessions = {one.session for one in every if one.parent == self.pid} | {self.pid}
        return [one for one in every if one.session in sessions or one.pid == self.pid]

    def send_signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def wait_for_exit(self, within_s: float) -> int:
        """Wait for its end; return its exit code."""
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the process does not end; output: {self.output[-3000:]}"
            ) from None

    def stop(self, within_s: float = 200) -> None:
        """Stop it with SIGTERM. It must exit with 0 and leave no process of its drivers.

        Python workers of Spark end soon after their JVM, so this waits for them.
        """
        drivers = self.drivers()
        self.send_signal()
        code = self.wait_for_exit(within_s)
        assert code == 0, f"exit code {code}; output: {self.output[-3000:]}"
        wait_until(
            lambda: not [left for driver in drivers for left in session_processes(driver.pid)],
            "all processes of its drivers to end",
            30,
        )

    def close(self) -> None:
        """Kill it if it still runs; wait until its drivers end."""
        drivers = self.drivers()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        sessions = {driver.pid for driver in drivers}
        wait_until(
            lambda: not any(one.session in sessions for one in all_processes()),
            "its drivers to end",
            SPARK_TIMEOUT_S,
        )

    def _wait_for_address(self) -> str:
        found: re.Match[str] | None = None

        def listens() -> bool:
            nonlocal found
            self._assert_running()
            found = _LISTENING.search(self.output)
            return found is not None

        try:
            wait_until(listens, "", SPARK_TIMEOUT_S)
        except AssertionError as error:
            raise AssertionError(f"the REST API does not listen; {error}: {self.output}") from None
        assert found
        return found[1]

    def _assert_running(self) -> None:
        assert self.is_running(), f"the process has ended: {self.output[-3000:]}"


@contextmanager
def running_process(
    command: Sequence[str],
    directory: Path,
    environ: Mapping[str, str] | None = None,
    log_name: str = "log",
) -> Iterator[MirrorProcess]:
    """Run a program in the block; kill it at the end of the block."""
    directory.mkdir(parents=True, exist_ok=True)
    program = MirrorProcess(command, directory, environ, log_name)
    try:
        yield program
    finally:
        program.close()


@contextmanager
def running_worker(
    properties: Mapping[str, str],
    directory: Path,
    environ: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Iterator[MirrorProcess]:
    """Run a Connect worker, on a free port unless `rest.port` is set.

    `prefix` is a command that runs the command which follows it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    chosen = dict(properties)
    if "rest.port" not in chosen:
        chosen.setdefault("listeners", "http://127.0.0.1:0")
    file = write_properties(directory / "connect-distributed.properties", chosen)
    command = [*prefix, *SPARKMIRROR, "worker", str(file)]
    with running_process(command, directory, environ) as program:
        yield program


@contextmanager
def running_mirror_maker(
    properties: Mapping[str, str], directory: Path, *arguments: str
) -> Iterator[MirrorProcess]:
    """Run all flows of an mm2.properties with `connect-mirror-maker.sh`."""
    directory.mkdir(parents=True, exist_ok=True)
    chosen = {"listeners": "http://127.0.0.1:0", **properties}
    file = write_properties(directory / "mm2.properties", chosen)
    script = str(SCRIPTS / "connect-mirror-maker.sh")
    with running_process([script, str(file), *arguments], directory) as program:
        yield program


def connector_path(connector: str) -> str:
    return f"/connectors/{quote(connector, safe='')}"
