"""The answer of `GET /`: version, commit, and the id of the worker's Kafka cluster.

The version is the Kafka release whose behaviour sparkmirror reproduces, because tools decide by it
which requests they may send. The commit names sparkmirror and its version.
"""

from __future__ import annotations

import logging
import threading
from importlib import metadata

from sparkmirror.backoff import Backoff
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.config.definition.plugin_versions import PLUGIN_VERSION
from sparkmirror.connect.herder.herder import ServerInfo
from sparkmirror.errors import ClusterError
from sparkmirror.logging_context import ContextThread

log = logging.getLogger(__name__)


def program_commit() -> str:
    """Return what stands for the commit: the name and the version of this program."""
    return f"sparkmirror-{metadata.version('sparkmirror')}"


class WorkerInfoProvider:
    """Answers at once; a thread looks up the id of the cluster."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._cluster_id: str | None = None
        self._stopped = threading.Event()
        self._thread = ContextThread(target=self._fetch_cluster_id, name="cluster-id")

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, without waiting for it."""
        self._stopped.set()

    def __call__(self) -> ServerInfo:
        """The answer; `kafka_cluster_id` is None until the cluster has answered."""
        return ServerInfo(
            version=PLUGIN_VERSION,
            commit=program_commit(),
            kafka_cluster_id=self._cluster_id,
        )

    def _fetch_cluster_id(self) -> None:
        backoff = Backoff(initial_s=0.5, max_s=10.0)
        while not self._stopped.is_set():
            try:
                with Admin(self._access) as admin:
                    self._cluster_id = admin.describe_cluster().cluster_id
            except ClusterError as error:
                log.info("The id of the worker's Kafka cluster is not known yet: %s", error)
                self._stopped.wait(backoff.next_delay_s())
            else:
                log.info("Kafka cluster ID: %s", self._cluster_id)
                return
