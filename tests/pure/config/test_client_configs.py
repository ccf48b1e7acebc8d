"""Clients of the connectors get exactly the properties that Java gives them."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config.client_configs import (
    ClientType,
    ClusterSide,
    client_config,
    connector_label,
    offset_syncs_client_config,
    offset_syncs_side,
    task_label,
    worker_producer_config,
)
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("vectors/client-configs.json")
CASES: list[dict[str, Any]] = RECORDED["cases"]
CLIENTS = [(side, client_type) for side in ClusterSide for client_type in ClientType]


def config(case: dict[str, Any], name: str = "MirrorSourceConnector") -> dict[str, str]:
    return {**RECORDED["base_config"], **case["extra_config"], "name": name}


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_clients_of_the_source_connector_are_as_recorded(case: dict[str, Any]) -> None:
    """The recorded topic names are not compared: the replication policy makes them."""
    props, recorded = config(case), case["source_connector"]
    label = connector_label(props)
    for side, client_type in CLIENTS:
        found = client_config(props, side, client_type, label=label, role="role")
        assert found == recorded[f"{side}{client_type.title()}(role)"]
    for client_type in (ClientType.ADMIN, ClientType.PRODUCER):
        found = offset_syncs_client_config(props, client_type, label=label)
        assert found == recorded[f"offsetSyncsTopic{client_type.title()}"]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_the_consumer_of_a_source_task_is_as_recorded(case: dict[str, Any]) -> None:
    props, recorded = config(case) | {"task.index": "0"}, case["source_task"]
    label = task_label(props)
    assert label == recorded["label"]
    role = "replication-consumer"
    found = client_config(props, ClusterSide.SOURCE, ClientType.CONSUMER, label=label, role=role)
    assert found == recorded[f"sourceConsumer({role})"]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_clients_of_the_checkpoint_connector_are_as_recorded(case: dict[str, Any]) -> None:
    props = config(case, "MirrorCheckpointConnector")
    for client_type in (ClientType.ADMIN, ClientType.CONSUMER):
        found = offset_syncs_client_config(props, client_type, label=connector_label(props))
        assert found == case["checkpoint_connector"][f"offsetSyncsTopic{client_type.title()}"]


@pytest.mark.parametrize(("side", "client_type"), CLIENTS)
def test_no_client_gets_config_providers_of_its_own(
    side: ClusterSide, client_type: ClientType
) -> None:
    declared = {
        f"{prefix}config.providers{rest}": "x"
        for prefix in (f"{side}.cluster.", f"{client_type}.", f"{side}.{client_type}.")
        for rest in ("", ".x.class", ".x.param.allowed.paths")
    }
    props = config(CASES[0])
    without = client_config(props, side, client_type, label="label")
    assert client_config(props | declared, side, client_type, label="label") == without


def test_the_workers_producer_gets_no_config_providers() -> None:
    worker = {"bootstrap.servers": "w:1", "producer.config.providers": "x", "producer.acks": "all"}
    connector = {"producer.override.config.providers.x.class": "FileConfigProvider"}
    made = worker_producer_config(worker, connector)
    assert made == {"bootstrap.servers": "w:1", "acks": "all"}


def test_a_client_without_a_role_has_the_id_of_its_connector() -> None:
    props = config(CASES[0])
    found = client_config(props, ClusterSide.TARGET, ClientType.ADMIN, label=connector_label(props))
    assert found["client.id"] == "A->B|MirrorSourceConnector"


def test_a_task_without_an_index_has_a_question_mark() -> None:
    assert task_label(config(CASES[0])) == "A->B|MirrorSourceConnector-?"


def test_the_target_is_called_target_unless_it_has_an_alias() -> None:
    assert connector_label({"name": "n", "source.cluster.alias": "A"}) == "A->target|n"


def test_offset_syncs_are_on_the_source_by_default() -> None:
    assert offset_syncs_side({}) is ClusterSide.SOURCE
    assert offset_syncs_side({"offset-syncs.topic.location": " target "}) is ClusterSide.TARGET
