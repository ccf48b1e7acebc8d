"""The tables have the keys of Kafka 4.3's own tables, in the same order."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config.definition.config_def import ConfigDef, ConfigKey
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.tables.checkpoint import CHECKPOINT, CHECKPOINT_TASK
from sparkmirror.config.tables.client.common_client_configs import (
    CLIENT_SECURITY_NAMES,
    MIRROR_CLIENT,
)
from sparkmirror.config.tables.connector_config import CONNECTOR
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.heartbeat import HEARTBEAT
from sparkmirror.config.tables.plugins.filters import CONFIG_FILTER, GROUP_FILTER, TOPIC_FILTER
from sparkmirror.config.tables.source import SOURCE, SOURCE_TASK
from sparkmirror.config.tables.source_framework import SOURCE_CONNECTOR_FRAMEWORK
from tests.support.golden import golden_json

TABLES = {
    "ConnectorConfig": CONNECTOR,
    "DefaultConfigPropertyFilter": CONFIG_FILTER,
    "DefaultGroupFilter": GROUP_FILTER,
    "DefaultTopicFilter": TOPIC_FILTER,
    "DistributedConfig": DISTRIBUTED,
    "MirrorCheckpointConnector": CHECKPOINT,
    "MirrorCheckpointTask": CHECKPOINT_TASK,
    "MirrorClientConfig": MIRROR_CLIENT,
    "MirrorHeartbeatConnector": HEARTBEAT,
    "MirrorMakerConfig": DEDICATED,
    "MirrorSourceConnector": SOURCE,
    "MirrorSourceTask": SOURCE_TASK,
    "SourceConnectorConfig": SOURCE_CONNECTOR_FRAMEWORK,
}


def row(key: ConfigKey) -> dict[str, Any]:
    """A key as the recording writes it. No key is internal, as in Kafka's tables."""
    return {
        "name": key.name,
        "type": key.type.value,
        "required": key.required,
        "default": key.default_text,
        "importance": key.importance.value,
        "validator": key.validator.description if key.validator else None,
        "group": key.group,
        "order_in_group": key.order,
        "width": key.width.value,
        "display_name": key.display_name,
        "dependents": list(key.dependents),
        "has_recommender": key.recommender is not None,
        "internal": False,
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_table_equals_the_recorded_one(name: str) -> None:
    assert [row(key) for key in TABLES[name]] == golden_json(f"configdef/{name}.json")


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_explained_in_one_to_three_sentences(name: str) -> None:
    for key in TABLES[name]:
        assert key.doc.endswith("."), key.name
        assert len(key.doc) > 20, key.name
        assert 1 <= key.doc.count(". ") + 1 <= 3, key.name


@pytest.mark.parametrize("name", TABLES)
def test_a_time_or_size_names_its_unit(name: str) -> None:
    units = {".ms": "millisecond", ".seconds": "second", ".bytes": "byte"}
    for key in TABLES[name]:
        for ending, unit in units.items():
            if key.name.endswith(ending) and not key.doc.startswith("No effect"):
                assert unit in key.doc, key.name


def test_a_name_has_the_same_definition_in_every_mirror_table() -> None:
    """Otherwise a flow's default in a dedicated file would have two meanings."""
    seen: dict[str, ConfigKey] = {}
    tables: list[ConfigDef] = [SOURCE, CHECKPOINT, HEARTBEAT]
    for key in (key for table in tables for key in table):
        if key.name != "consumer.poll.timeout.ms":  # one waits for records, one for the clock
            assert seen.setdefault(key.name, key) == key


def test_names_of_all_connectors_are_as_recorded() -> None:
    recorded = golden_json("vectors/mirror-maker-config.json")["all_connector_config_names"]
    assert frozenset(recorded) == ALL_CONNECTOR_NAMES


def test_names_copied_to_every_client_are_as_recorded() -> None:
    named = {"replication.policy", "forwarding.admin"}
    recorded = [key["name"] for key in golden_json("configdef/MirrorClientConfig.json")]
    expected = [name for name in recorded if not name.startswith(tuple(named))]
    assert list(CLIENT_SECURITY_NAMES) == expected
