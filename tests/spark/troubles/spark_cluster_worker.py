"""A worker on a Spark cluster that comes and grows: the troubles of Spark, of files and of clocks.

Its config topic has a connector without its task config, as compaction may leave it. Its clock and
that of its driver are a day ahead. Its receipts cannot be written, because a file is in the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.produce_and_consume import ProducerRecord, produce_records
from sparkmirror.engine.driver.spark_conf import FAST_START_JVM_OPTIONS, LOOPBACK
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.spark.troubles.surfaces import Subject
from tests.spark.troubles.troubled_mirror import (
    MAIN,
    RECORDS,
    TroubledMirror,
    create_topics,
    write_records,
)
from tests.support.cli.mirror_process import MirrorProcess, connector_path, running_worker
from tests.support.copy.clock_skew import skewed_program_environment
from tests.support.spark.standalone_cluster import StandaloneCluster, running_standalone_cluster
from tests.support.waiting import wait_until

COMPACTED = "compacted"
"""The connector whose task config is missing."""
GROUP = "troubles-spark"
TOPIC = "spark-cluster"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkClusterWorker:
    """The worker. The port of its Spark master is closed until `running_spark_master`."""

    mirror: TroubledMirror
    program: MirrorProcess
    directory: Path
    master_port: int
    blocking_file: Path

    def start_source_connector(self) -> Subject:
        """Copy a topic of two partitions with two tasks."""
        create_topics(self.mirror.source, [TOPIC], partitions=2)
        write_records(self.mirror.source, TOPIC, RECORDS)
        config = self.mirror.config(topics=TOPIC) | {
            "source.cluster.alias": "north",
            "tasks.max": "2",
        }
        self.program.call_json("PUT", f"{connector_path(MAIN)}/config", config)
        return Subject(connector=MAIN, topic=TOPIC)

    def running_spark_master(
        self, reaper: ProcessReaper
    ) -> AbstractContextManager[StandaloneCluster]:
        """Run a Spark master without a worker."""
        return running_standalone_cluster(reaper, self.directory, 0, self.master_port)

    def make_receipts_writable(self) -> None:
        self.blocking_file.unlink()

    def has_wrong_clock(self) -> bool:
        """Whether the worker and its driver live tomorrow."""
        logs = [self.program.log, *self.program.log.parent.rglob("spark-*.log")]
        tomorrow = f"[{datetime.now().astimezone() + DAY:%Y-%m-%d}"
        return len(logs) == 2 and all(tomorrow in one.read_text("utf-8") for one in logs)

    def stop_while_a_connector_is_in_trouble(self) -> None:
        """Stop the worker with SIGTERM while a connector has not reached its source."""
        path = connector_path("in-trouble")
        wrong = {"source.cluster.bootstrap.servers": f"{LOOPBACK}:1"}
        config = self.mirror.config("Checkpoint") | wrong
        self.program.call_json("PUT", f"{path}/config", config)

        def is_in_trouble() -> bool:
            answer = self.program.request("GET", f"{path}/status")
            return answer.status == 200 and "refused" in answer.json["connector"].get("trace", "")

        wait_until(is_in_trouble, "the connector to be in trouble")
        self.program.stop()


@contextmanager
def running_spark_cluster_worker(
    mirror: TroubledMirror, directory: Path
) -> Iterator[SparkClusterWorker]:
    """Start the worker, without its source connector and without a Spark master."""
    [port] = PortRegistry().claim(1, directory)
    blocking = directory / "blocking"
    blocking.write_text("")
    properties = mirror.other_properties(GROUP) | {
        "spark.master": f"spark://{LOOPBACK}:{port}",
        "spark.driver.host": LOOPBACK,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": FAST_START_JVM_OPTIONS,
        "sparkmirror.receipts": str(blocking / "receipts"),
    }
    _write_compacted_configs(mirror, properties["config.storage.topic"])
    environ = skewed_program_environment(round(DAY.total_seconds() * 1000), directory / "clock")
    with running_worker(properties, directory / "worker", environ) as program:
        yield SparkClusterWorker(
            mirror=mirror,
            program=program,
            directory=directory,
            master_port=port,
            blocking_file=blocking,
        )


def _write_compacted_configs(mirror: TroubledMirror, topic: str) -> None:
    """Write a connector with one task to a config topic, without the config of the task."""
    access = mirror.target.access(ListenerProtocol.PLAINTEXT)
    with Admin(access) as admin:
        policy = {"cleanup.policy": "compact"}
        admin.create_topic(NewTopic(name=topic, partitions=1, configs=policy))
    config = mirror.config("Heartbeat") | {"name": COMPACTED}
    values = {f"connector-{COMPACTED}": {"properties": config}, f"commit-{COMPACTED}": {"tasks": 1}}
    records = [
        ProducerRecord(key=key.encode(), value=json.dumps(value).encode(), partition=0)
        for key, value in values.items()
    ]
    produce_records(access, topic, records)
