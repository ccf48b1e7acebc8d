"""The process of a Connect worker: Java's or sparkmirror's, with the same properties."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.process_tree import ProcessTree
from bench.systems import ROOT, SCRIPT_JVM, System
from sparkmirror.errors import LabError
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.processes.process_identity import Process
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.properties_file import write_properties

START_TIMEOUT_S = 600.0
REQUEST_TIMEOUT_S = 60.0
_CONFLICT_RETRY_S = 0.05
_BYTE_ARRAY_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
_STORAGE_TOPICS = {"config": "configs", "offset": "offsets", "status": "statuses"}


def worker_properties(bootstrap_servers: str, group: str, port: int) -> dict[str, str]:
    """Return the properties of a distributed worker. Everything else has its default."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": _BYTE_ARRAY_CONVERTER,
        "value.converter": _BYTE_ARRAY_CONVERTER,
        **{
            key: value
            for name, topic in _STORAGE_TOPICS.items()
            for key, value in (
                (f"{name}.storage.topic", f"{group}-{topic}"),
                (f"{name}.storage.replication.factor", "1"),
            )
        },
    }


def source_connector_config(
    alias: str, source: str, target: str, topics: str, tasks: int = 1
) -> dict[str, str]:
    """Return the JSON of a source connector."""
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": alias,
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": source,
        "target.cluster.bootstrap.servers": target,
        "topics": topics,
        "tasks.max": str(tasks),
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",  # the brokers have no authorizer
    }


class ConnectWorker:
    """One running worker. `tree` is its process with all descendants."""

    def __init__(
        self,
        system: System,
        properties: Mapping[str, str],
        directory: Path,
        reaper: ProcessReaper,
        state: Path | None = None,
    ) -> None:
        """Start it. Only this worker uses `directory`; `state` is that of a worker before it."""
        directory.mkdir(parents=True)
        self.system = system
        self.address = properties["listeners"].removeprefix("http://")
        self._log = directory / "log"
        file = str(write_properties(directory / "connect-distributed.properties", properties))
        self._process: Process = reaper.launch(
            _command(system, file),
            log=self._log,
            cwd=ROOT,
            environ={**os.environ, "XDG_STATE_HOME": str(state or directory)},
        )
        self.tree = ProcessTree(self._process.pid)

    def wait_until_ready(self) -> float:
        """Wait until the worker lists its connectors; return its age in seconds. Blocks."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            self.ensure_running()
            try:
                if self.request("GET", "/connectors")[0] == http.HTTPStatus.OK:
                    return self.tree.age_s()
            except OSError:
                pass  # it does not listen yet
            if time.monotonic() > deadline:
                raise LabError(f"the worker of {self.system} does not answer. {self._log_tail()}")
            time.sleep(0.1)

    def put_connector(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change its config. Waits while the group rebalances."""
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            status, answer = self.request("PUT", f"/connectors/{name}/config", dict(config))
            if status < http.HTTPStatus.BAD_REQUEST:
                return
            if status != http.HTTPStatus.CONFLICT or time.monotonic() > deadline:
                raise LabError(f"{self.system} refuses connector {name}: {status} {answer}")
            time.sleep(_CONFLICT_RETRY_S)

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request; return status and JSON of the answer. Raises OSError.

        Java's worker answers with a page instead of JSON while it starts: that is None.
        """
        connection = http.client.HTTPConnection(self.address, timeout=REQUEST_TIMEOUT_S)
        try:
            text = None if body is None else json.dumps(body)
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            content = answer.read()
            is_json = "json" in answer.getheader("Content-Type", "")
            return answer.status, json.loads(content) if content and is_json else None
        finally:
            connection.close()

    def ensure_running(self) -> None:
        """Raise LabError if the process has ended."""
        if not self._process.is_running():
            raise LabError(f"the worker of {self.system} has ended. {self._log_tail()}")

    def kill(self) -> None:
        """Kill the worker with all descendants, and wait."""
        self.tree.kill()
        self._process.wait_for_exit(REQUEST_TIMEOUT_S)

    def log_text(self) -> str:
        """Return the log so far."""
        return self._log.read_text("utf-8", errors="replace")

    def _log_tail(self) -> str:
        lines = self.log_text().splitlines()
        return "End of its log: " + " / ".join(lines[-5:])


def free_port() -> int:
    """Return a port of the loopback address that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _command(system: System, file: str) -> list[str]:
    if system is System.SPARKMIRROR:
        return [sys.executable, "-m", "sparkmirror", "worker", file]
    return KafkaToolRunner(jvm=SCRIPT_JVM).command("connect-distributed", [file])
