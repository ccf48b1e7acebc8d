"""A flow whose passwords change while it copies: nothing is restarted by hand, nothing is lost."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S, SPARKMIRROR, running_process
from tests.support.cli.property_files import LONG_SHUTDOWN, SHORT_INTERVALS, SINGLE_REPLICA
from tests.support.kafka.clusters import read_values, write_values
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)

SESSION_MS = "8000"
"""A session that ends: the next authentication needs the password of now."""
FILE = """clusters=west,east
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
west->east.enabled=true
west->east.topics=clicks
emit.heartbeats.enabled=false
emit.checkpoints.enabled=false
listeners=http://127.0.0.1:0
replication.factor=1
offset-syncs.topic.replication.factor=1
heartbeats.topic.replication.factor=1
"""
LOGIN = """{alias}.bootstrap.servers={servers}
{alias}.security.protocol=SASL_PLAINTEXT
{alias}.sasl.mechanism=SCRAM-SHA-512
{alias}.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
username="mirror" password="${{file:{file}:{alias}}}";
"""


@pytest.fixture(scope="module")
def clusters(reaper: ProcessReaper, lab_directory: Path) -> Iterator[dict[str, Cluster]]:
    """Both clusters, each with a user for the test and one for the mirror."""
    specs = [
        ClusterSpec(
            name=name,
            fast_start=True,
            listeners=(ListenerProtocol.SASL_PLAINTEXT,),
            users={"test": "test-secret", "mirror": "first-secret"},
            properties={"listener.name.sasl_plaintext.connections.max.reauth.ms": SESSION_MS},
        )
        for name in ("west", "east")
    ]
    started = Cluster.start_all(specs, lab_directory, reaper, log.info)
    yield {cluster.spec.name: cluster for cluster in started}
    for cluster in started:
        cluster.remove()


def test_passwords_that_change_while_records_are_copied(
    clusters: dict[str, Cluster], tmp_path: Path
) -> None:
    west, east = clusters["west"], clusters["east"]
    passwords = tmp_path / "passwords.properties"
    set_passwords(clusters, passwords, "first-secret")
    with Admin(west.access()) as admin:
        admin.create_topic(NewTopic(name="clicks", partitions=1))
    before = [b"before %d" % number for number in range(50)]
    write_values(west.access(), "clicks", *before)
    command = [*SPARKMIRROR, "run", str(mm2_file(clusters, passwords, tmp_path))]
    with running_process(command, tmp_path / "run", dict(os.environ)) as program:

        def has_copied(expected: list[bytes]) -> bool:
            assert program.is_running(), program.output[-4000:]
            with Admin(east.access()) as admin:
                if "west.clicks" not in admin.describe_topics(["west.clicks"]):
                    return False
            return read_values(east.access(), "west.clicks") == expected

        wait_until(lambda: has_copied(before), "the first records", SPARK_TIMEOUT_S)
        set_passwords(clusters, passwords, "second-secret")
        wait_until(
            lambda: "values of its config have changed" in program.output,
            "the connector to restart",
            SPARK_TIMEOUT_S,
        )
        after = [b"after %d" % number for number in range(50)]
        write_values(west.access(), "clicks", *after)
        wait_until(lambda: has_copied(before + after), "the other records", SPARK_TIMEOUT_S)
        assert "second-secret" not in program.output
        program.stop()


def set_passwords(clusters: dict[str, Cluster], file: Path, password: str) -> None:
    """Change the mirror's passwords on both clusters and in the file."""
    for cluster in clusters.values():
        with Admin(cluster.access()) as admin:
            admin.alter_user_scram_credentials({"mirror": password})
    file.write_text("".join(f"{alias}={password}\n" for alias in clusters))


def mm2_file(clusters: dict[str, Cluster], passwords: Path, directory: Path) -> Path:
    """Write the file of the flow."""
    logins = "".join(
        LOGIN.format(alias=alias, servers=cluster.bootstrap_servers(), file=passwords)
        for alias, cluster in clusters.items()
    )
    more = {**SINGLE_REPLICA, **LONG_SHUTDOWN, **SHORT_INTERVALS}
    file = directory / "mm2.properties"
    file.write_text(FILE + logins + "".join(f"{key}={value}\n" for key, value in more.items()))
    return file
