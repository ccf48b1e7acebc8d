"""The commands of public tutorials work with our worker, on one-broker clusters.

Only hosts, ports, and names of topics and groups differ from the tutorials. The tutorials keep
default replication factors of 2 and 3. The brokers auto-create the topics that we cannot create.
"""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.lab.processes.port_registry import PortRegistry
from tests.support.cli.mirror_process import (
    SCRIPTS,
    SPARK_TIMEOUT_S,
    MirrorProcess,
    running_process,
)
from tests.support.kafka.clusters import SharedCluster
from tests.support.spark.mirrored_clusters import MirroredClusters, topic_names
from tests.support.waiting import wait_until

TUTORIALS = Path(__file__).parent / "tutorials"
RECORDS = 100
KINDS = ("checkpoints", "heartbeats", "source")
FENCES = 2
"""For a busy computer, on which a task may miss its reports."""


class Tutorial:
    """A copy of a tutorial's files, and a shell in its directory."""

    def __init__(self, name: str, directory: Path, replacements: Mapping[str, str]) -> None:
        """`replacements` maps addresses and names of the tutorial to those of the test."""
        self._replacements = replacements
        self.directory = directory / name
        shutil.copytree(TUTORIALS / name, self.directory)
        for file in self.directory.iterdir():
            file.write_text(self._localized(file.read_text("utf-8")), "utf-8")

    def shell(self, command: str) -> str:
        """Run a command of the tutorial; returns its output."""
        done = subprocess.run(
            ["bash", "-c", self._localized(command)],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def json(self, command: str) -> Any:
        """Run a command of the tutorial; returns the JSON that it prints."""
        return json.loads(self.shell(command))

    def _localized(self, text: str) -> str:
        for name, replacement in self._replacements.items():
            text = text.replace(name, replacement)
        return text


def free_port(owner: Path) -> str:
    """A port that stays reserved while the directory exists."""
    [port] = PortRegistry().claim(1, owner)
    return str(port)


def script(tutorial: Tutorial, file: str) -> list[str]:
    """The command line of Kafka's script for a worker's file."""
    return [str(SCRIPTS / "connect-distributed.sh"), str(tutorial.directory / file)]


def wait_for_rest(tutorial: Tutorial, command: str) -> None:
    """Repeat a command until REST answers."""
    wait_until(lambda: bool(tutorial.shell(command)), "REST to answer", SPARK_TIMEOUT_S)


@pytest.mark.soak
def test_the_quickstart_of_one_connector_works(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    mark = secrets.token_hex(3)
    topic, remote = f"to_replicate_{mark}", f"source.to_replicate_{mark}"
    replacements = {
        "broker:29092": mirrored_clusters.source.bootstrap,
        "broker2:29093": mirrored_clusters.target.bootstrap,
        "28082": free_port(tmp_path),
        "to_replicate": topic,
        "quickstart": f"quickstart_{mark}",
    }
    tutorial = Tutorial("quickstart", tmp_path, replacements)
    mirrored_clusters.create_topic(topic)
    mirrored_clusters.write_records(topic, range(RECORDS))
    with running_process(script(tutorial, "kafka-connect.properties"), tmp_path / "run"):
        wait_for_rest(tutorial, "curl -s localhost:28082/connectors")
        created = tutorial.json(
            "cat connectors.json | curl -X POST -H 'Content-Type: application/json'"
            " localhost:28082/connectors --data-binary @-"
        )
        assert created["name"] == "test_mirror"
        assert created["type"] == "source"
        assert tutorial.json("curl localhost:28082/connectors") == ["test_mirror"]
        mirrored_clusters.wait_until_copied(topic, remote, timeout_s=SPARK_TIMEOUT_S)
        mirrored_clusters.write_records(topic, range(RECORDS, 2 * RECORDS))
        mirrored_clusters.wait_until_copied(topic, remote, timeout_s=SPARK_TIMEOUT_S)
    mirrored_clusters.assert_copied(topic, remote, fences=FENCES)
    assert {
        *(f"quickstart_{mark}_{what}" for what in ("config", "offsets", "status")),
        "mm2-offset-syncs.target.internal",
    } <= topic_names(mirrored_clusters.source)


def test_the_script_that_deploys_three_connectors_works(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    mark = secrets.token_hex(3)
    topic = f"test_{mark}"
    replacements = {
        "kafka-source-0:9092": mirrored_clusters.source.bootstrap,
        "kafka-target-0:9092": mirrored_clusters.target.bootstrap,
        "8083": free_port(tmp_path),
        '"topics": "test"': f'"topics": "{topic}"',
        "topic=connect-": f"topic=connect-{mark}-",
        "group.id=connect-": f"group.id=connect-{mark}-",
    }
    tutorial = Tutorial("scripted", tmp_path, replacements)
    mirrored_clusters.create_topic(topic, 5)
    mirrored_clusters.write_records(topic, range(RECORDS), 5)
    with running_process(
        script(tutorial, "connect-distributed.properties"), tmp_path / "run"
    ) as program:
        wait_for_rest(tutorial, "curl -s localhost:8083/")
        assert tutorial.shell("./mm2.sh status source-0") == "cpc: null\nhbc: null\nmsc: null\n"
        deploying = [f"Deploying {kind} connector" for kind in KINDS]
        assert tutorial.shell("./mm2.sh deploy source-0").splitlines() == deploying
        running_all = "".join(f'{kind}: "RUNNING"\n' for kind in ("cpc", "hbc", "msc"))
        wait_until(
            lambda: tutorial.shell("./mm2.sh status source-0") == running_all,
            "all to run",
            SPARK_TIMEOUT_S,
        )
        again = tutorial.shell("./mm2.sh deploy source-0")
        assert again.count("connector already deployed") == 3
        mirrored_clusters.wait_until_copied(topic, topic, 5, SPARK_TIMEOUT_S)
        mirrored_clusters.assert_copied(topic, topic, 5, FENCES)
        program.wait_for_states("mm2-msc-source-0", "RUNNING", "RUNNING", "RUNNING")
        _wait_for_topics(mirrored_clusters.source, "mm2-offset-syncs.target-0.internal")
        _wait_for_topics(mirrored_clusters.target, "heartbeats", "source-0.checkpoints.internal")
        output = tutorial.shell("./mm2.sh redeploy source-0").splitlines()
        undeployed = [f"{kind} connector undeployed" for kind in KINDS]
        assert output == [*undeployed, *deploying]
        assert tutorial.shell("./mm2.sh undeploy source-0").splitlines() == undeployed
        assert tutorial.shell("./mm2.sh undeploy source-0").count("WARN: ") == 3
        wait_until(
            lambda: not program.drivers(), "Spark to end with its connector", SPARK_TIMEOUT_S
        )


@pytest.mark.soak
def test_the_migration_with_a_custom_policy_works(
    mirrored_clusters: MirroredClusters, tmp_path: Path
) -> None:
    mark = secrets.token_hex(3)
    topic, group = f"ExampleTopic-{mark}", f"example-group-{mark}"
    replacements = {
        "$brokersmsksource": mirrored_clusters.source.bootstrap,
        "$brokersmskdest": mirrored_clusters.target.bootstrap,
        "8083": free_port(tmp_path),
        "ExampleTopic": topic,
        "topic=connect-": f"topic=connect-{mark}-",
        "group.id=connect-": f"group.id=connect-{mark}-",
    }
    tutorial = Tutorial("msk", tmp_path, replacements)
    mirrored_clusters.create_topic(topic, 3)
    mirrored_clusters.write_records(topic, range(RECORDS), 3)
    mirrored_clusters.commit_group_offset(group, topic, RECORDS // 2)
    tutorial.shell(
        's=connect-distributed-auth.properties; sed -i -e "s/bootstrap.servers=/bootstrap.servers='
        '$brokersmskdest/g" $s && cp $s connect-distributed.properties'
    )
    for side, brokers in (("target", "$brokersmskdest"), ("source", "$brokersmsksource")):
        tutorial.shell(
            rf'sed -i -e "s/\"{side}.cluster.bootstrap.servers\": \"\"/'
            rf'\"{side}.cluster.bootstrap.servers\": \"{brokers}\"/g" *.json'
        )
    with running_process(
        script(tutorial, "connect-distributed.properties"), tmp_path / "run"
    ) as program:
        wait_for_rest(tutorial, "curl -s localhost:8083/")
        wait_until(
            lambda: "Herder started" in program.output, "the herder to start", SPARK_TIMEOUT_S
        )
        assert "Herder starting" in program.output
        worker = tutorial.json("curl -X GET http://localhost:8083| jq .")
        assert list(worker) == ["version", "commit", "kafka_cluster_id"]
        files = {
            "mm2-msc": "mm2-msc-cust-repl-policy.json",
            "mm2-cpc": "mm2-cpc-cust-repl-policy-sync.json",
            "mm2-hbc": "mm2-hbc.json",
        }
        for name, file in files.items():
            echo = tutorial.json(
                'curl -X PUT -H "Content-Type: application/json"'
                f" --data @{file} http://localhost:8083/connectors/{name}/config | jq '.'"
            )
            assert (echo["name"], echo["type"]) == (name, "source")
        mirrored_clusters.wait_until_copied(topic, topic, 3, SPARK_TIMEOUT_S)
        mirrored_clusters.assert_copied(topic, topic, 3, FENCES)
        wait_until(
            lambda: _all_run(program, "mm2-msc", at_least=3), "its tasks to run", SPARK_TIMEOUT_S
        )
        for name in ("mm2-cpc", "mm2-hbc"):
            program.wait_for_states(name, "RUNNING", "RUNNING")
            status = tutorial.json(f"curl -s localhost:8083/connectors/{name}/status | jq .")
            assert status["connector"]["state"] == "RUNNING"
        wait_until(
            lambda: mirrored_clusters.synced_group_offset(group, topic) == RECORDS // 2,
            "the group's offsets",
            SPARK_TIMEOUT_S,
        )
        _wait_for_topics(mirrored_clusters.source, "mm2-offset-syncs.mskdest.internal")
        _wait_for_topics(mirrored_clusters.target, "heartbeats", "msksource.checkpoints.internal")


def _all_run(program: MirrorProcess, connector: str, at_least: int) -> bool:
    """Whether a connector and all its tasks run; old heartbeats topics may add a task."""
    state, tasks = program.states(connector)
    return {state, *tasks} == {"RUNNING"} and len(tasks) >= at_least


def _wait_for_topics(cluster: SharedCluster, *names: str) -> None:
    """Wait for topics; the brokers create some of them with the first record."""
    wait_until(
        lambda: set(names) <= topic_names(cluster),
        f"{cluster.name} to have {names}",
        SPARK_TIMEOUT_S,
    )
