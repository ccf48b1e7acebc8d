"""A password reaches the brokers, and nobody else: not REST, not a log, not a topic, not `ps`."""

from __future__ import annotations

import secrets
from pathlib import Path

from sparkmirror.cluster.topic_contents import read_topic
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol
from sparkmirror.lab.cluster.properties_file import write_properties
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import connector_configs, worker_properties
from tests.support.kafka.clusters import SharedCluster
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.waiting import wait_until

RECORDS = 100
USER = "mirror"
CLIENTS = ("", "producer.", "consumer.", "admin.")
VIEWS = ("", "/config", "/status", "/tasks", "/tasks-config", "/offsets", "/partitions", "/groups")


def test_a_password_from_a_file_is_nowhere_else(
    sides: MirroredClusters, towns: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    password = towns[1].spec.users[USER]
    wrong = f"wrong-{secrets.token_hex(8)}"
    vault = write_properties(tmp_path / "vault", {"password": password})
    mark = secrets.token_hex(3)
    aliases, topic, group = (f"east{mark}", f"west{mark}"), f"orders-{mark}", f"billing-{mark}"
    guarded = SharedCluster(
        name="guarded", properties=_login(towns[1], f"${{file:{vault}:password}}")
    )
    file = worker_properties(guarded, f"workers-{mark}") | {
        **{f"{kind}{key}": value for kind in CLIENTS for key, value in guarded.properties.items()},
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    connectors = connector_configs(
        MirroredClusters(source=sides.source, target=guarded), aliases, topic, group
    )
    refused = connectors[f"{aliases[0]}-Heartbeat"] | {"name": "refused"}
    refused |= {f"target.cluster.{k}": v for k, v in _login(towns[1], wrong).items()}
    refused |= {f"producer.override.{k}": v for k, v in _login(towns[1], wrong).items()}
    sides.create_topic(topic)
    sides.write_records(topic, range(RECORDS))
    sides.commit_group_offset(group, topic, RECORDS // 2)
    with running_worker(file, tmp_path / "run") as program:
        for name, config in (*connectors.items(), ("refused", refused)):
            program.call_json("PUT", f"{connector_path(name)}/config", config)
        remote = f"{aliases[0]}.{topic}"
        sides.wait_until_copied(topic, remote, timeout_s=SPARK_TIMEOUT_S)
        wait_until(
            lambda: sides.synced_group_offset(group, remote) == RECORDS // 2,
            "the group",
            SPARK_TIMEOUT_S,
        )
        wait_until(
            lambda: _is_refused(program), "the wrong password to be refused", SPARK_TIMEOUT_S
        )
        answers = {
            f"GET {name}{view}": program.request("GET", f"{connector_path(name)}{view}").content
            for name in (*connectors, "refused")
            for view in VIEWS
            if name != "refused" or view in ("/status", "/offsets", "/partitions", "/groups")
        }
        kind = connectors[f"{aliases[0]}-Source"]["connector.class"]
        for name, config in connectors.items():
            path = f"/connector-plugins/{config['connector.class']}/config/validate"
            answers[f"PUT {path} {name}"] = program.request("PUT", path, config).content
        assert kind.encode() in answers[f"GET {aliases[0]}-Source/config"]
        processes = {
            f"process {one.pid}": f"{one.command}\n{one.environment()}".encode()
            for one in program.processes()
        }
        assert len(processes) > 3, "Spark does not run"
        program.stop()
    places = answers | processes | _topic_contents(sides, file) | _file_contents(tmp_path / "run")
    assert any("spark" in name for name in places)
    assert [name for name, text in places.items() if password.encode() in text] == []
    places = {name: text for name, text in places.items() if name != _configs(file)}
    assert [name for name, text in places.items() if wrong.encode() in text] == []


def _login(town: Cluster, password: str) -> dict[str, str]:
    """How the user gets in with a password, or with what stands for it."""
    known = town.client_properties(ListenerProtocol.SASL_PLAINTEXT, USER, "PLAIN")
    return {key: value.replace(town.spec.users[USER], password) for key, value in known.items()}


def _is_refused(program: MirrorProcess) -> bool:
    status = program.request("GET", "/connectors/refused/status").content.decode()
    return "uthentication" in status


def _configs(file: dict[str, str]) -> str:
    return f"topic {file['config.storage.topic']}"


def _topic_contents(sides: MirroredClusters, file: dict[str, str]) -> dict[str, bytes]:
    """All that the worker remembers."""
    return {
        f"topic {name}": b"\n".join(
            (record.key or b"") + b" " + (record.value or b"")
            for record in read_topic(sides.target.access, name)
        )
        for name in (file[f"{what}.storage.topic"] for what in ("config", "offset", "status"))
    }


def _file_contents(directory: Path) -> dict[str, bytes]:
    """All files that the program has written: its log, Spark's, receipts."""
    return {str(file): file.read_bytes() for file in directory.rglob("*") if file.is_file()}
