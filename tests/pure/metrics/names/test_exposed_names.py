"""The names and labels of rule sets."""

from __future__ import annotations

import pytest

from sparkmirror.metrics import client_metrics, connect_metrics, mirror_metrics, process_metrics
from sparkmirror.metrics.definition import Figure, MetricDefinition, RuleSet
from sparkmirror.metrics.names.exposed_names import expose
from tests.support.exposed_series import Series, series, series_of
from tests.support.metric_definitions import DEFINITIONS

SOURCE = {"source": "A", "target": "B", "topic": "A.t", "partition": "0"}


def exposed(definition: MetricDefinition, labels: dict[str, str], *names: str) -> set[Series]:
    figure = Figure(definition=definition, value=1, labels=labels)
    return set(series_of(expose([figure], [RuleSet(name) for name in names])))


@pytest.mark.parametrize(
    ("rule_set", "expected"),
    [
        ("strimzi", series("kafka_connect_mirror_mirrorsourceconnector_record_count", **SOURCE)),
        ("jmx", series("kafka_connect_mirror_MirrorSourceConnector_record_count", **SOURCE)),
        (
            "aws",
            series(
                "kafka_connect_mirror_source_connector_record_count",
                destination="B",
                topic="A.t",
                partition="0",
            ),
        ),
    ],
)
def test_each_rule_set_has_names_and_labels_of_its_own(rule_set: str, expected: Series) -> None:
    assert exposed(mirror_metrics.RECORD_COUNT, SOURCE, rule_set) == {expected}


def test_aws_rules_have_one_checkpoint_latency_for_each_flow() -> None:
    labels = {"source": "A", "target": "B", "group": "g", "topic": "A.t"}
    assert exposed(mirror_metrics.CHECKPOINT_LATENCY["_max"], labels, "aws") == {
        series(
            "kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_max",
            source="A",
            target="B",
        )
    }


def test_rule_sets_with_the_same_name_share_a_series_with_the_labels_of_both() -> None:
    found = exposed(client_metrics.INCOMING_BYTES, {"clientid": "c"}, "strimzi", "aws")
    assert found == {series("kafka_consumer_incoming_byte_total", clientid="c", clientId="c")}


def test_the_jmx_exporter_itself_has_no_types_and_no_texts() -> None:
    found = exposed(client_metrics.INCOMING_BYTES, {"clientid": "c"}, "jmx")
    assert found == {series("kafka_consumer_consumer_metrics_incoming_byte", client_id="c")}
    labels = {"connector": "c", "task": "0", "status": "running"}
    assert exposed(connect_metrics.CONNECTOR_STATUS, labels, "jmx") == set()


@pytest.mark.parametrize("rule_set", list(RuleSet))
def test_what_kafka_does_not_have_is_the_same_everywhere(rule_set: RuleSet) -> None:
    assert exposed(process_metrics.PROCESS_MEMORY, {}, rule_set) == {
        series("process_resident_memory_bytes")
    }
    for definition in DEFINITIONS.values():
        labels = dict.fromkeys(definition.labels, "x")
        if not definition.name.startswith("kafka_"):
            assert exposed(definition, labels, rule_set) == {series(definition.name, **labels)}
