"""`sparkmirror transform try` shows records before and after, and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sparkmirror.cli.transform.command import transform
from sparkmirror.cli.transform.source_connector_config import source_connector_config
from sparkmirror.cli.transform.trial import try_transformations
from sparkmirror.cli.transform.tried_record import MAX_TEXT
from sparkmirror.cluster.produce_and_consume import ConsumerRecord
from sparkmirror.copy.task.transform.record_evaluator import FailedRow, RecordRow
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import ConfigError, PropertiesError
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.wire.batch.records import Record
from tests.support.kafka.log_brokers import PRODUCE, LogBrokers, running_log_brokers

MASK = (
    *("--set", "transforms=m"),
    *("--set", "transforms.m.type=org.apache.kafka.connect.transforms.MaskField$Value"),
    *("--set", "transforms.m.fields=ssn"),
    *("--set", "sparkmirror.transform.value.format=json"),
)
ROUTER = {
    "transforms": "r",
    "transforms.r.type": "RegexRouter",
    "transforms.r.regex": "source[.](.*)",
    "transforms.r.replacement": "$1",
}
TWO_FLOWS = """clusters=A,B
A.bootstrap.servers=a:1
B.bootstrap.servers=b:1
A->B.enabled=true
B->A.enabled=true
A->B.transforms=t
"""


@pytest.fixture
def brokers() -> Iterator[LogBrokers]:
    with running_log_brokers(brokers=1, partitions=2) as running:
        for number in range(6):
            running.append(number % 2, b'{"ssn":"%d"}' % number)
        yield running


def run(brokers: LogBrokers, *options: str) -> Result:
    source = str(brokers.brokers[0].address)
    arguments = ["try", "--source", source, "--topic", "t", *options]
    return CliRunner().invoke(transform, arguments, catch_exceptions=False, standalone_mode=False)


def run_json(brokers: LogBrokers, *options: str) -> Any:
    return json.loads(run(brokers, *options, "--format", "json").output)


def settings(config: dict[str, str], **more: str) -> dict[str, str]:
    return dict(source_connector_config(None, "", "a:1", [])) | config | more


def record(value: bytes | None = b"v", **changes: Any) -> ConsumerRecord:
    given = {"partition": 0, "offset": 1, "timestamp_ms": 5, "key": None, "headers": ()}
    return ConsumerRecord(value=value, **{**given, **changes})


def test_the_last_records_of_all_partitions_are_shown_before_and_after(brokers: LogBrokers) -> None:
    found = run_json(brokers, "--last", "3", *MASK)
    assert [(one["partition"], one["offset"]) for one in found["records"]] == [
        (1, 1),
        (0, 2),
        (1, 2),
    ]
    assert [one["before"]["value"] for one in found["records"]] == [
        '{"ssn":"3"}',
        '{"ssn":"4"}',
        '{"ssn":"5"}',
    ]
    assert {one["after"]["value"] for one in found["records"]} == {'{"ssn":""}'}
    assert found["lane"] == "records: m needs values"
    assert found["refusals"] == []
    assert not brokers.requests_of(PRODUCE)


def test_the_text_ends_with_the_counts_and_the_lane(brokers: LogBrokers) -> None:
    result = run(brokers, "--last", "1", *MASK)
    assert result.return_value == 0
    assert '  value    {"ssn":"5"}\n        -> {"ssn":""}\n' in result.output
    assert "1 records of t: 1 sent.\nLane records: m needs values.\n" in result.output


def test_a_record_that_would_hold_its_partition_is_the_exit_code(brokers: LogBrokers) -> None:
    brokers.append(0, b"no JSON")
    result = run(brokers, "--last", "1", *MASK)
    assert result.return_value == 2
    assert "t-0 offset 3: held" in result.output
    assert "error    TO_CONNECT_VALUE: org.apache.kafka.connect.errors.DataException" in (
        result.output
    )
    tolerated = run_json(brokers, "--last", "1", *MASK, "--set", "errors.tolerance=all")
    assert tolerated["records"][0]["result"] == "dropped"
    assert tolerated["records"][0]["error"]["stage"] == "TO_CONNECT_VALUE"


def test_a_record_shows_the_topic_that_it_goes_to(brokers: LogBrokers) -> None:
    router = ("--set", "transforms=d", "--set", "transforms.d.type=TimestampRouter")
    result = run(brokers, "--last", "1", *router)
    assert result.return_value == 0
    assert "        -> source.t-19700101\n" in result.output
    assert "records: d sends records of one topic to different topics" in result.output


def test_what_a_mirror_refuses_can_be_tried(brokers: LogBrokers) -> None:
    refused = ("--set", "sparkmirror.errors.deadletterqueue.topic.name=dead")
    result = run(brokers, "--last", "1", *MASK, *refused)
    assert result.return_value == 2
    assert "A mirror refuses to run this." in result.output


def test_faults_of_the_transformations_are_found_before_a_cluster_is_asked() -> None:
    arguments = ["try", "--source", "127.0.0.1:1", "--topic", "t", "--set", "transforms=x"]
    with pytest.raises(ConfigError, match="transforms.x.type"):
        CliRunner().invoke(transform, arguments, catch_exceptions=False)


def test_a_cluster_or_a_file_must_be_named() -> None:
    result = CliRunner().invoke(transform, ["try", "--topic", "t"])
    assert "name a file with --config, or the cluster with --source" in result.output


def test_a_route_shows_the_remote_topic_and_heartbeats_keep_theirs() -> None:
    for topic, remote in (("orders", "orders"), ("heartbeats", "source.heartbeats")):
        (tried,) = try_transformations(settings(ROUTER), topic, [record()]).records
        assert tried.before.topic == f"source.{topic}"
        assert tried.after is not None
        assert tried.after.topic == remote


def test_heartbeats_are_not_transformed() -> None:
    mask = {
        "transforms": "m",
        "transforms.m.type": "MaskField$Value",
        "transforms.m.fields": "ssn",
        "sparkmirror.transform.value.format": "json",
    }
    given = record(b"\x00\x00binary")
    for topic, is_sent in (("heartbeats", True), ("up.heartbeats", True), ("orders", False)):
        (tried,) = try_transformations(settings(mask), topic, [given]).records
        assert (tried.after == tried.before) is is_sent


def test_terminals_get_no_control_characters_and_no_long_texts() -> None:
    given = record(b"\x1b[2J\n", key=b"\xff\x00", headers=(("h\x07", None),), timestamp_ms=-1)
    (tried,) = try_transformations(settings({}), "t", [given]).records
    assert list(tried.text_lines()) == [
        "t-0 offset 1: sent",
        "  topic    source.t",
        "  time     none",
        "  key      ff 00",
        "  value    \\u001b[2J\\u000a",
        "  headers  h\\u0007: null",
    ]
    (tried,) = try_transformations(settings({}), "t", [record(b"x" * 1000)]).records
    assert f"  value    {'x' * MAX_TEXT}... (1000 bytes)" in list(tried.text_lines())
    assert tried.json_object()["before"]["value"] == "x" * 1000


def test_a_part_that_is_no_text_is_base64_in_json() -> None:
    (tried,) = try_transformations(settings({}), "t", [record(None, key=b"\xff")]).records
    assert tried.json_object()["before"] == {
        "topic": "source.t",
        "timestamp": 5,
        "key": {"base64": "/w=="},
        "value": None,
        "headers": [],
    }


def test_the_flow_of_a_file_is_chosen_and_settings_win(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(TWO_FLOWS)
    with pytest.raises(PropertiesError, match="has the flows A->B, B->A; choose one with --flow"):
        source_connector_config(file, "", "", [])
    with pytest.raises(PropertiesError, match="A->C is none of its flows: A->B, B->A"):
        source_connector_config(file, "A->C", "", [])
    config = source_connector_config(file, "A->B", "", ["transforms = u", "x="])
    assert config["transforms"] == "u"
    assert config["x"] == ""
    assert config["source.cluster.bootstrap.servers"] == "a:1"
    with pytest.raises(ConfigError, match="write it as key=value"):
        source_connector_config(file, "A->B", "", ["transforms"])


def test_a_source_connector_of_a_json_file_is_chosen(tmp_path: Path) -> None:
    file = tmp_path / "connectors.json"
    source = {"connector.class": "MirrorSourceConnector", "source.cluster.alias": "west"}
    checkpoint = {"connector.class": "MirrorCheckpointConnector"}
    file.write_text(json.dumps({"one": source, "two": checkpoint}))
    assert source_connector_config(file, "", "", [])["source.cluster.alias"] == "west"
    assert source_connector_config(file, "west->target", "b:2", [])["name"] == "one"
    file.write_text(json.dumps({"two": checkpoint}))
    with pytest.raises(PropertiesError, match="has no flow"):
        source_connector_config(file, "", "", [])


QUERY = {"sparkmirror.transform.sql": "SELECT * FROM records"}


def test_what_a_query_gives_is_shown_like_what_transforms_give() -> None:
    requests: list[QueryRequest] = []

    def ask(request: QueryRequest) -> QueryAnswer:
        requests.append(request)
        changed = Record(1, -1, b"k", b"new", ((b"h", None),))
        return QueryAnswer(outcomes=(changed, None, FailedRow("java.lang.X", "no")))

    given = [record(headers=(("a", b"1"),)), record(), record()]
    config = settings({**QUERY, **ROUTER})
    trial = try_transformations(config, "orders", given, ask)
    sent, dropped, held = trial.records
    assert sent.after == KafkaRecord("orders", 0, None, b"k", b"new", (("h", None),))
    assert (sent.result, dropped.result, held.result) == ("sent", "dropped", "held")
    assert list(held.text_lines())[-1] == "  error    TRANSFORMATION: java.lang.X: no"
    assert trial.lane == "rows: Spark evaluates sparkmirror.transform.sql"
    (request,) = requests
    assert (request.topic, request.transforms) == ("source.orders", QUERY)
    assert request.rows[0] == (0, RecordRow(Record(1, 5, None, b"v", ((b"a", b"1"),)), 0))
    tolerant = {**config, "errors.tolerance": "all"}
    assert try_transformations(tolerant, "orders", given, ask).records[2].result == "dropped"


def test_a_query_that_spark_refuses_is_an_error_of_the_config() -> None:
    answer = QueryAnswer(error="has the operator Sort")
    with pytest.raises(ConfigError, match="has the operator Sort"):
        try_transformations(settings(QUERY), "orders", [record()], lambda _: answer)


def test_without_records_or_for_heartbeats_no_spark_starts() -> None:
    def ask(_: QueryRequest) -> QueryAnswer:
        raise AssertionError

    assert try_transformations(settings(QUERY), "orders", [], ask).records == ()
    (tried,) = try_transformations(settings(QUERY), "heartbeats", [record()], ask).records
    assert tried.after == tried.before
