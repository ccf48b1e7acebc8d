"""A Connect worker as one process: its file in, herder and REST server out.

REST answers at once; the herder reads Connect's topics meanwhile, and Spark starts in processes of
its own when a source connector wants it. The end: no more requests, then every task drained and
told, then the stores closed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial

from sparkmirror.cluster.access import Access
from sparkmirror.config.worker_file import WorkerFile
from sparkmirror.connect.herder import Herder
from sparkmirror.connect.settings import WorkerSettings
from sparkmirror.connect.worker_life import Surroundings
from sparkmirror.directories import state_directory
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.settings import rest_settings
from sparkmirror.store.stores import kafka_stores
from sparkmirror.worker.about import About
from sparkmirror.worker.ending import Ending
from sparkmirror.worker.fence import fence_on
from sparkmirror.worker.kinds import connector_kinds
from sparkmirror.worker.sight import Sight
from sparkmirror.worker.spark_settings import SparkSettings

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.5
REST_WITHIN_S = 1.0
DIED = 1
"""The exit code when the herder ends by itself, as Connect's."""


class ConnectWorker:
    """One worker. `run` belongs to the main thread."""

    def __init__(self, file: WorkerFile, environment: Mapping[str, str]) -> None:
        """Put everything together; nothing is asked of a cluster yet. ConfigError lists faults."""
        began = time.monotonic()
        config, properties = file.config(), dict(file.expand().values)
        rest = rest_settings(config, properties, environment)
        spark = SparkSettings.of(properties, properties["group.id"], state_directory(environment))
        access = Access.from_properties("the worker's cluster", properties)
        self._about = About(access)
        sight = Sight()
        settings = WorkerSettings.of(config, rest.worker_id, properties)
        self.herder = Herder(
            settings,
            kafka_stores(properties, access),
            Surroundings(
                kinds=connector_kinds(properties, spark, sight.of_flow()),
                about=self._about,
                providers=file.providers,
                fence=partial(fence_on, access),
            ),
        )
        self.rest = RestServer(self.herder, rest.listeners, rest.options, sight)
        log.info(
            "Kafka Connect worker initialization took %.0fms", (time.monotonic() - began) * 1000
        )

    def run(self, ending: Ending) -> int:
        """Work until told to end, or until the herder dies; returns the exit code."""
        log.info("Kafka Connect starting")
        self.rest.start()
        log.info("REST server listening at %s, advertising URL %s", *2 * [self.rest.address])
        self.herder.start()
        self._about.start()
        log.info("Kafka Connect started")
        failure: Exception | None = None
        while not ending.wait(LOOK_EVERY_S) and failure is None:
            failure = self.herder.wait_over(0)
        self._stop()
        return DIED if failure else 0

    def _stop(self) -> None:
        log.info("Kafka Connect stopping")
        self._about.stop()
        self.rest.stop(REST_WITHIN_S)
        self.herder.shut_down()
        log.info("Kafka Connect stopped")
