"""Tutorial 002, typed from its first command to its last, with IAM logins on both clusters.

Replaced words: the directories `/tmp/kafka` and `/home/ec2-user/kafka`, and the port of the worker
(`curl` reaches it under port 8083). `systemctl` is the unit of `deploy/systemd`, run as systemd
would: its command, its log file, its signal. An MSK cluster is a real broker behind an IAM listener
that checks the signature of each login; the credentials of the EC2 instance are variables. Kafka's
tools have no IAM login without Amazon's library, so they use another listener. The workshop does
not print its files: they are ours, with its names, its empty addresses and its blanks. The second
node is optional there and has no AWS stack here; the test of tutorial 001 has two workers.
"""

from __future__ import annotations

import configparser
import shlex
import shutil
from pathlib import Path

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from tests.spark.tutorials.conftest import AWS_CREDENTIALS, AWS_REGION
from tests.support.cli.mirror_process import SCRIPTS, SPARK_TIMEOUT_S, running_process
from tests.support.security.msk_iam_listener import MskIamListener
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.tutorials.containers import free_ports, wait_until_copied
from tests.support.tutorials.tutorial import TUTORIALS, Tutorial
from tests.support.waiting import wait_until

UNIT = TUTORIALS.parents[1] / "deploy" / "systemd" / "kafka-connect.service"
TOPIC, PARTITIONS, RECORDS = "ExampleTopic", 3, 100
GROUP = "example-group"
CANARY = "__amazon_msk_canary"
FENCES = 2
"""For a busy computer, on which a task may miss its reports."""


def test_migration_with_iam_logins_and_a_custom_policy(
    single_broker_clusters: MirroredClusters,
    iam_listeners: tuple[MskIamListener, MskIamListener],
    iam_authority: CertificateAuthority,
    kafka_tools: Path,
    tmp_path: Path,
) -> None:
    clusters = single_broker_clusters
    [port] = free_ports(1, tmp_path)
    kafka, client = tmp_path / "kafka", tmp_path / "ec2-user"
    words = {
        "/tmp/kafka": str(kafka),  # noqa: S108 - the directory of the workshop
        "/home/ec2-user/kafka": str(client),
        "--bootstrap-server=$brokersmsksource": f"--bootstrap-server={clusters.source.bootstrap}",
        "--bootstrap-server=$brokersmskdest": f"--bootstrap-server={clusters.target.bootstrap}",
    }
    tutorial = Tutorial("002", tmp_path / "home", words, {8083: port})
    shutil.copytree(tutorial.directory / "own", kafka)
    (client / "config").mkdir(parents=True)
    (kafka / "client-config.properties").rename(client / "config" / "client-config.properties")
    (client / "bin").symlink_to(kafka_tools)
    template = kafka / "connect-distributed-iam-auth.properties"
    template.write_text(template.read_text().replace("8083", str(port)))
    for side, listener in zip(("source", "dest"), iam_listeners, strict=True):
        tutorial.environment[f"brokersmsk{side}"] = listener.address
    clusters.create_topic(TOPIC, PARTITIONS)
    clusters.create_topic(CANARY)
    clusters.write_records(TOPIC, range(RECORDS), PARTITIONS)
    clusters.commit_group_offset(GROUP, TOPIC, RECORDS // 2)

    tutorial.run("cd /tmp/kafka")
    tutorial.run("sed -i -e")
    tutorial.run("cp connect-distributed-iam-auth.properties")
    tutorial.take("sudo systemctl start kafka-connect.service")
    environment = {
        **tutorial.environment,
        **AWS_CREDENTIALS,
        "AWS_REGION": AWS_REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SSL_CERT_FILE": str(iam_authority.ca_certificate),
    }
    command, log_name = _service(kafka)
    with running_process(command, kafka, environment, log_name) as program:
        assert program.address
        wait_until(
            lambda: "Herder started" in program.output, "the herder to start", SPARK_TIMEOUT_S
        )
        tutorial.take("sudo systemctl status kafka-connect.service")
        assert program.is_running()
        herder = tutorial.run("cat /tmp/kafka/kafka-connect.log|grep Herder")
        assert "Herder starting" in herder and "Herder started" in herder
        worker = tutorial.run_json("curl -X GET http://localhost:8083| jq .")
        assert list(worker) == ["version", "commit", "kafka_cluster_id"]
        tutorial.run("cd /home/ec2-user/kafka")
        assert {TOPIC, CANARY} <= set(tutorial.run("./bin/kafka-topics.sh").split())
        before = set(tutorial.run("./bin/kafka-topics.sh").split())
        assert len([name for name in before if name.startswith("connect-")]) == 3
        for line in ("export MSK_STACK", "export ssh_cmd2", "$ssh_cmd2"):
            tutorial.take(line)
        tutorial.run("cd /tmp/kafka")
        for _ in range(6):
            tutorial.run("sed -i -e")
        for name, tasks in (("mm2-msc", PARTITIONS), ("mm2-cpc", 1), ("mm2-hbc", 1)):
            echo = tutorial.run_json("curl -X PUT")
            assert (echo["name"], echo["type"]) == (name, "source")
            program.wait_for_states(name, "RUNNING", *["RUNNING"] * tasks)
            status = tutorial.run_json("curl -s localhost:8083/connectors")
            assert status["connector"]["state"] == "RUNNING"
            assert len(status["tasks"]) == tasks, "not more than partitions, whatever tasks.max is"
        wait_until_copied(program, clusters, TOPIC, TOPIC, PARTITIONS)
        wait_until(
            lambda: clusters.synced_group_offset(GROUP, TOPIC) == RECORDS // 2,
            "the group's offsets",
            SPARK_TIMEOUT_S,
        )
        wanted = {TOPIC, "heartbeats", "msksource.checkpoints.internal"}
        wait_until(lambda: wanted <= clusters.target_topics(), f"{wanted}", SPARK_TIMEOUT_S)
        tutorial.run("cd /home/ec2-user/kafka")
        at_source = set(tutorial.run("./bin/kafka-topics.sh").split())
        assert "mm2-offset-syncs.mskdest.internal" in at_source
        at_target = set(tutorial.run("./bin/kafka-topics.sh").split())
        assert wanted <= at_target
        assert CANARY not in at_target
        assert tutorial.commands_left == []
        program.stop()
    clusters.assert_copied(TOPIC, TOPIC, PARTITIONS, FENCES)
    for listener in iam_listeners:
        assert (set(listener.logins), listener.refusals) == ({"AKIDEXAMPLE"}, [])


def _service(directory: Path) -> tuple[list[str], str]:
    """The command of the unit, and the name of its log; the signal of its stop is SIGTERM."""
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(UNIT.read_text("utf-8"))
    service = unit["Service"]
    command = service["ExecStart"].replace("/tmp/kafka", str(directory))  # noqa: S108
    program, file = shlex.split(command)
    assert service.get("KillSignal", "SIGTERM") == "SIGTERM"
    log = Path(service["StandardOutput"].removeprefix("append:"))
    assert log.parent == Path("/tmp/kafka")  # noqa: S108
    return [str(SCRIPTS / Path(program).name), file], log.name
