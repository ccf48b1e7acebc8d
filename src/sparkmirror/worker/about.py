"""Who this worker is: the version people see, and the id of the cluster that keeps its state.

The version is that of the Kafka release whose behaviour is reproduced, because tools decide by it
what they may ask for; the commit says which program really answers.
"""

from __future__ import annotations

import logging
import threading
from importlib import metadata

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.admin import Admin
from sparkmirror.config.versions import PLUGIN_VERSION
from sparkmirror.connect.herding import WorkerInfo
from sparkmirror.errors import ClusterError
from sparkmirror.wire.backoff import Backoff

log = logging.getLogger(__name__)


class About:
    """Answers at once; the id of the cluster is looked up in the background."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._cluster_id: str | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look_up, name="cluster-id", daemon=True)

    def start(self) -> None:
        """Begin to look for the cluster."""
        self._thread.start()

    def stop(self) -> None:
        """Look no longer."""
        self._is_over.set()

    def __call__(self) -> WorkerInfo:
        """Say what is known by now."""
        return WorkerInfo(
            version=PLUGIN_VERSION,
            commit=f"sparkmirror-{metadata.version('sparkmirror')}",
            kafka_cluster_id=self._cluster_id,
        )

    def _look_up(self) -> None:
        backoff = Backoff(first_s=0.5, longest_s=10.0)
        while not self._is_over.is_set():
            try:
                with Admin(self._access) as admin:
                    self._cluster_id = admin.describe_cluster().cluster_id
            except ClusterError as error:
                log.info("The id of the worker's cluster is not known yet: %s", error)
                self._is_over.wait(backoff.pause_s())
            else:
                log.info("Kafka cluster ID: %s", self._cluster_id)
                return
