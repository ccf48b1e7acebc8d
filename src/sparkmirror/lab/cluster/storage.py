"""Formats the data directory of a broker without starting Java each time.

Kafka's StorageTool formats one directory for each Kafka version. The cache keeps it as a template.
Every other directory is a copy with its own ids; two formatted directories differ in nothing else.
"""

from __future__ import annotations

import base64
import logging
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from sparkmirror.errors import BrokerFailed
from sparkmirror.lab.processes.file_locks import locked
from sparkmirror.lab.properties_file import write_properties

log = logging.getLogger(__name__)

_META_PROPERTIES = "meta.properties"
_STORAGE_TOOL = "kafka.tools.StorageTool"
_TOOL_TIMEOUT_S = 120
# StorageTool requires a complete broker configuration; only log.dirs matters here.
_TEMPLATE_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.quorum.voters": "1@127.0.0.1:9093",
}


def random_uuid() -> str:
    """Return a random id in Kafka's notation: 22 characters, the first one not a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


class StorageFormatter:
    """Formats data directories for one Kafka version."""

    def __init__(self, *, version: str, java: Path, classpath: str, cache: Path) -> None:
        self._version = version
        self._java = java
        self._classpath = classpath
        self._template = cache / "formatted" / version

    def format(self, data: Path, *, cluster_id: str, node_id: int) -> None:
        """Create `data`, which must not exist, as the empty data directory of one node."""
        shutil.copytree(self._ensure_template(), data)
        lines = (data / _META_PROPERTIES).read_text(encoding="latin-1").splitlines()
        meta = dict(line.split("=", 1) for line in lines if "=" in line and line[:1] != "#")
        meta |= {"cluster.id": cluster_id, "node.id": str(node_id), "directory.id": random_uuid()}
        write_properties(data / _META_PROPERTIES, meta)

    def _ensure_template(self) -> Path:
        if self._template.is_dir():
            return self._template
        with locked(self._template.with_name(f".lock-{self._version}"), _log_wait):
            if not self._template.is_dir():
                self._make_template()
        return self._template

    def _make_template(self) -> None:
        """Format a directory with StorageTool; one rename makes it the template.

        Requires the lock. Blocks. Raises BrokerFailed.
        """
        with tempfile.TemporaryDirectory(dir=self._template.parent) as work:
            data, config = Path(work) / "data", Path(work) / "server.properties"
            write_properties(config, _TEMPLATE_PROPERTIES | {"log.dirs": str(data)})
            command = [str(self._java), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
            command += ["-XX:-UsePerfData", f"-Djava.io.tmpdir={work}", "-cp", self._classpath]
            command += [_STORAGE_TOOL, "format", "-t", random_uuid(), "-c", str(config)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S, check=False
            )
            if done.returncode != 0 or not (data / _META_PROPERTIES).is_file():
                output = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
                raise BrokerFailed(
                    f"Kafka {self._version} could not format a data directory"
                    f" (exit code {done.returncode}). End of its output:\n{output}"
                )
            data.rename(self._template)
        log.info("Formatted a template for Kafka %s", self._version)


def _log_wait(holder: str) -> None:
    log.info("Waiting for %s, which formats a template", holder)
