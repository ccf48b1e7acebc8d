"""The ZooKeeper of one cluster: one server, which outlives stops and crashes of single brokers.

Its nodes hold what a KRaft cluster keeps in its controllers: the cluster id, topics, configs, ACLs
and SCRAM credentials. The lab stores the cluster id before the first broker starts; otherwise a
broker would make one up. Changes are not flushed to disk: no crash of a process loses them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from sparkmirror.lab.kafka.jvm_options import FAST_START_OPTIONS, server_options
from sparkmirror.lab.processes.port_registry import PortInUse
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.lab.processes.server_process import ServerProcess
from sparkmirror.lab.zookeeper.zookeeper_client import ZooKeeperClient
from sparkmirror.wire.net.address import Address

START_TIMEOUT_S = 120.0
EXPIRY_TIMEOUT_S = 120.0
_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_HEAP = "-Xmx128m"
_TICK_MS = 500
_MAX_SESSION_TIMEOUT_MS = 120_000
_LOG_FILE_KB = 1024
_POLL_INTERVAL_S = 0.05
# A server that is still starting accepts connections and may never answer their first request.
_FIRST_ATTEMPT_S, _LAST_ATTEMPT_S = 0.5, 5.0


def zookeeper_command(java: Path, classpath: str, version: str, directory: Path) -> list[str]:
    """Return the command that runs the ZooKeeper of a Kafka version in its directory."""
    return [
        str(java),
        _HEAP,
        *FAST_START_OPTIONS,
        *server_options(version, directory),
        *("-cp", classpath, _MAIN, str(directory / ZooKeeperProcess.PROPERTIES_NAME)),
    ]


class ZooKeeperProcess(ServerProcess):
    """The ZooKeeper server of a cluster, running or not."""

    PROPERTIES_NAME = "zookeeper.properties"
    LOG_NAME = "zookeeper.log"

    def __init__(
        self, name: str, directory: Path, *, command: Callable[[], list[str]], reaper: ProcessReaper
    ) -> None:
        super().__init__(name, directory, command=command, format_data=Path.mkdir, reaper=reaper)

    def prepare_and_launch(self, address: Address) -> None:
        """Write its files and start it unless it runs. Does not wait until it is ready."""
        self.prepare(
            {
                "dataDir": str(self.data_directory),
                "clientPort": str(address.port),
                "clientPortAddress": address.host,
                "tickTime": str(_TICK_MS),
                "maxSessionTimeout": str(_MAX_SESSION_TIMEOUT_MS),
                "maxClientCnxns": "0",
                "admin.enableServer": "false",
                "forceSync": "no",
                "preAllocSize": str(_LOG_FILE_KB),
            }
        )
        self.launch()

    def wait_until_ready(
        self, address: Address, cluster_id: str, timeout_s: float = START_TIMEOUT_S
    ) -> None:
        """Wait until it answers; store the cluster id if there is none.

        Blocks. Raises PortInUse, or BrokerFailed if it dies or the time is over.
        """
        deadline = time.monotonic() + timeout_s
        attempt_s = _FIRST_ATTEMPT_S
        while True:
            try:
                _store_cluster_id(address, cluster_id, attempt_s)
            except OSError as error:
                self._check_running()
                if time.monotonic() > deadline:
                    what = f"does not answer after {timeout_s:.0f} s: {error}"
                    raise self.failure(what) from error
                time.sleep(_POLL_INTERVAL_S)
                if isinstance(error, TimeoutError):
                    attempt_s = min(2 * attempt_s, _LAST_ATTEMPT_S)
            else:
                return

    def wait_for_expiry(
        self, address: Address, brokers: Iterable[int], timeout_s: float = EXPIRY_TIMEOUT_S
    ) -> None:
        """Wait until no broker is registered: one that was killed is, until its session expires.

        A broker that starts earlier finds its id taken and ends. Blocks. Raises BrokerFailed.
        """
        deadline = time.monotonic() + timeout_s
        with ZooKeeperClient(address) as client:
            for broker in brokers:
                while client.exists(f"/brokers/ids/{broker}"):
                    if time.monotonic() > deadline:
                        raise self.failure(f"has broker {broker} after {timeout_s:.0f} s")
                    time.sleep(_POLL_INTERVAL_S)

    def _check_running(self) -> None:
        if self.is_running():
            return
        if self.failed_to_bind():
            raise PortInUse(f"{self.name} lost its port to another program.")
        raise self.failure("ended while it should have started")


def _store_cluster_id(address: Address, cluster_id: str, timeout_s: float) -> None:
    """Store a cluster id as a broker does; an id that is there stays."""
    content = {"version": "1", "id": cluster_id}
    with ZooKeeperClient(address, timeout_s) as client:
        client.create("/cluster", b"")
        client.create("/cluster/id", json.dumps(content).encode())
