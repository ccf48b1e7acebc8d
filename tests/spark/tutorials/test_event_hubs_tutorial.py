"""Tutorial 004: the image runs the flows of its work directory, with secrets from a file.

Replaced words: addresses, `/properties`, and `/app/replicator`, the work directory of the image.
Added to the tutorial's file, which prints five of its lines, are the logins and a listener on a
free port. Event Hubs is a real cluster with the login of Event Hubs; what a service that is not
Kafka refuses is another test. `docker` links the mounts of `docker run` and runs the entry point of
the image, whose build is another test; `docker-run.sh` is that of `deploy/compose/004`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from tests.spark.tutorials.conftest import (
    EVENT_HUBS_CONNECTION_STRING,
    EVENT_STREAMS_SOURCE_KEY,
    mirrored_with_logins,
    write_system_authorities,
)
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S, running_process
from tests.support.spark.mirrored_clusters import topic_names
from tests.support.tutorials.containers import wait_until_copied
from tests.support.tutorials.tutorial import TUTORIALS, Tutorial
from tests.support.waiting import wait_until

COMPOSE = TUTORIALS.parents[1] / "deploy" / "compose" / "004"
TOPICS = ("topic1", "topic2")
PARTITIONS, RECORDS = 2, 100
FENCES = 2
"""For a busy computer, on which a task may miss its reports."""


def test_image_mirrors_to_event_hubs_with_secrets_of_a_file(
    secured_clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    source, target = secured_clusters
    clusters = mirrored_with_logins(source, target)
    container = tmp_path / "container"
    container.mkdir()
    event_hubs = target.bootstrap_servers(ListenerProtocol.SASL_SSL)
    words = {
        "${file:/properties/": f"${{file:{container}/properties/",
        "krotondevpoc.servicebus.windows.net:9093": event_hubs.partition(",")[0],
    }
    tutorial = Tutorial("004", tmp_path / "home", words)
    tutorial.install("docker")
    authorities = tmp_path / "authorities.pem"
    write_system_authorities(authorities, secured_clusters)
    tutorial.environment |= {"CONTAINER": str(container), "SSL_CERT_FILE": str(authorities)}
    _write_files(tutorial, source.bootstrap_servers(), event_hubs)
    for topic in TOPICS:
        clusters.create_topic(topic, PARTITIONS)
        clusters.write_records(topic, range(RECORDS), PARTITIONS)

    tutorial.take("docker build")
    tutorial.environment["WITHOUT_START"] = "1"
    tutorial.run("docker run --rm -it --hostname mm2-replicator")
    printed = (container / "arguments").read_text("utf-8")
    del tutorial.environment["WITHOUT_START"]
    script = tutorial.take("./docker-run.sh")
    started = ["bash", "-c", f'cd "{tutorial.directory}" && exec {script}']
    with running_process(started, tmp_path / "run", tutorial.environment) as program:
        for topic in TOPICS:
            wait_until_copied(program, clusters, topic, f"source.{topic}", PARTITIONS)
        assert (container / "arguments").read_text("utf-8") == printed
        [mirror] = [one for one in program.processes() if one.pid == program.pid]
        words_of_image = mirror.command.split("/")[-3:]
        command = tutorial.take("connect-mirror-maker.sh")
        assert mirror.command.endswith(command), words_of_image
        wanted = {
            "heartbeats",
            "source.heartbeats",
            "source.checkpoints.internal",
            *(f"mm2-{what}.source.internal" for what in ("configs", "offsets", "status")),
            *(f"source.{topic}" for topic in TOPICS),
        }
        wait_until(lambda: wanted <= clusters.target_topics(), f"{wanted}", SPARK_TIMEOUT_S)
        assert "mm2-offset-syncs.target.internal" in topic_names(clusters.source)
        assert "CONNECTED" in tutorial.run("openssl s_client")
        program.stop()
    assert tutorial.commands_left == []
    assert EVENT_HUBS_CONNECTION_STRING not in program.output
    for topic in TOPICS:
        clusters.assert_copied(topic, f"source.{topic}", PARTITIONS, FENCES)


def _write_files(tutorial: Tutorial, source: str, target: str) -> None:
    """Complete the tutorial's file, fill in the template, and copy the script."""
    home = tutorial.directory
    own = (home / "own" / "logins.properties").read_text("utf-8")
    flows = home / "config" / "mm2-config.properties"
    text = f"{flows.read_text('utf-8')}{own}listeners=http://127.0.0.1:0\n"
    flows.write_text(text, "utf-8")
    template = COMPOSE / "properties" / "template_access.properties"
    access = {
        "SRC_BROKERS": source,
        "SRC_API_KEY": "token",
        "SRC_API_SECRET": EVENT_STREAMS_SOURCE_KEY,
        "TGT_BROKERS": target,
        "TGT_API_SECRET": EVENT_HUBS_CONNECTION_STRING,
    }
    lines = []
    for line in template.read_text("utf-8").splitlines():
        key, _, value = line.partition("=")
        lines.append(f"{key}={access.get(key, value)}" if value or key in access else line)
    (home / "properties").mkdir()
    (home / "properties" / "access.properties").write_text("\n".join(lines) + "\n", "utf-8")
    shutil.copy(COMPOSE / "docker-run.sh", home / "docker-run.sh")
    assert os.access(home / "docker-run.sh", os.X_OK)
