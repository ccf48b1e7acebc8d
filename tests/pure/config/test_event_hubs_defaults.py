"""Azure Event Hubs as the target: values where no key sets one, shown by validate and explain."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.cli.config.worker_start_checks import worker_start_checks
from sparkmirror.config.event_hubs_defaults import (
    event_hubs_defaults,
    event_hubs_notice,
    event_hubs_request_timeout_s,
    event_hubs_worker_defaults,
    is_event_hubs,
)
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.files.provenance import PrecedenceRule
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.review.explain import explain
from sparkmirror.config.review.file_validation import validate_file
from sparkmirror.config.review.start_check_callbacks import StartCheckCallbacks
from sparkmirror.model import SourceAndTarget

HUBS = "my.servicebus.windows.net:9093"
FILE = f"""clusters=source,target
source.bootstrap.servers=a:9092
target.bootstrap.servers={HUBS}
source->target.enabled=true
"""
NO_CHECKS = StartCheckCallbacks(
    client=lambda _: (),
    rest=lambda _, __: (),
    connector=lambda _, __: (),
    transformations=lambda _: (),
    circular_topic=lambda _, __: "",
)
FLOW = SourceAndTarget("source", "target")


@pytest.mark.parametrize(
    ("servers", "verdict"),
    [
        (HUBS, True),
        ("MY.Servicebus.Windows.NET:9093", True),
        (f"{HUBS}, other.servicebus.windows.net:9093", True),
        ("my.servicebus.chinacloudapi.cn:9093", True),
        (f"{HUBS},my.servicebus.usgovcloudapi.net:9093", True),
        (f"{HUBS},kafka:9092", False),
        ("servicebus.windows.net.example.org:9093", False),
        ("", False),
    ],
)
def test_event_hubs_is_known_by_its_domain(servers: str, verdict: bool) -> None:
    assert is_event_hubs({"bootstrap.servers": servers}) is verdict


def test_a_value_of_the_user_stays() -> None:
    producer = {"bootstrap.servers": HUBS, "max.request.size": "5"}
    assert event_hubs_defaults(producer) == {
        "compression.type": "none",
        "request.timeout.ms": "60000",
    }
    every = producer | {"compression.type": "gzip", "request.timeout.ms": "1000"}
    assert event_hubs_defaults(every) == {}
    worker = {"bootstrap.servers": HUBS, "session.timeout.ms": "9000"}
    assert event_hubs_worker_defaults(worker) == {}
    assert event_hubs_notice(every, worker, "bootstrap.servers", 3) is None


def test_another_service_gets_no_values() -> None:
    kafka = {"bootstrap.servers": "kafka:9092"}
    assert (event_hubs_defaults(kafka), event_hubs_worker_defaults(kafka)) == ({}, {})
    assert event_hubs_request_timeout_s(kafka) is None


def test_validate_names_the_values() -> None:
    report = validate_file(parse_properties(FILE.encode(), file="f"), {}, NO_CHECKS)
    (notice,) = [one for one in report.notices if one.kind is NoticeKind.EVENT_HUBS]
    assert (notice.key, notice.line) == ("target.bootstrap.servers", 3)
    assert notice.message == (
        "names Azure Event Hubs: the producer of records uses max.request.size=1000000,"
        " compression.type=none and request.timeout.ms=60000, the worker uses"
        " session.timeout.ms=30000, because no key sets them"
    )


def test_validate_names_the_values_of_a_worker_file() -> None:
    text = f"""bootstrap.servers={HUBS}
group.id=g
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
offset.storage.topic=o
config.storage.topic=c
status.storage.topic=s
producer.max.request.size=900000
producer.request.timeout.ms=30000
session.timeout.ms=20000
"""
    report = validate_file(parse_properties(text.encode(), file="f"), {}, NO_CHECKS)
    (notice,) = [one for one in report.notices if one.kind is NoticeKind.EVENT_HUBS]
    assert (notice.key, notice.line) == ("bootstrap.servers", 1)
    assert "uses compression.type=none, because no key sets it" in notice.message


SOURCE, WORKER = FlowPart.SOURCE, FlowPart.WORKER
SIZE, PATIENCE = "producer.override.max.request.size", "producer.override.request.timeout.ms"
SESSION = "session.timeout.ms"


@pytest.mark.parametrize(
    ("part", "key", "more", "value", "rule"),
    [
        (SOURCE, SIZE, "", "1000000", PrecedenceRule.EVENT_HUBS),
        (SOURCE, SIZE, "target.producer.max.request.size=7\n", "7", PrecedenceRule.CLUSTER),
        (SOURCE, PATIENCE, "", "60000", PrecedenceRule.EVENT_HUBS),
        (SOURCE, PATIENCE, "target.producer.request.timeout.ms=9\n", "9", PrecedenceRule.CLUSTER),
        (WORKER, SESSION, "", "30000", PrecedenceRule.EVENT_HUBS),
        (WORKER, SESSION, f"target.{SESSION}=9000\n", "9000", PrecedenceRule.CLUSTER),
        (WORKER, SESSION, "target.bootstrap.servers=b:9092\n", "10000", PrecedenceRule.DEFAULT),
    ],
)
def test_explain_says_where_a_value_comes_from(
    part: FlowPart, key: str, more: str, value: str, rule: PrecedenceRule
) -> None:
    config = MirrorMakerConfig.open(parse_properties((FILE + more).encode(), file="f"), {})
    found = explain(config, FLOW, part, key)
    assert (found.value, found.origin.rule, found.is_read) == (value, rule, True)


@pytest.mark.parametrize("is_there", [True, False], ids=["read", "not-there"])
def test_explain_reads_bootstrap_servers_from_a_file(tmp_path: Path, is_there: bool) -> None:
    secrets = tmp_path / "access.properties"
    if is_there:
        secrets.write_text(f"TGT_BROKERS={HUBS}\n", "utf-8")
    text = FILE.replace(HUBS, f"${{file:{secrets}:TGT_BROKERS}}") + (
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
    )
    config = MirrorMakerConfig.open(parse_properties(text.encode(), file="f"), {})
    session = explain(config, FLOW, WORKER, SESSION)
    assert session.value == ("30000" if is_there else "10000")
    if is_there:
        assert explain(config, FLOW, SOURCE, SIZE).origin.rule is PrecedenceRule.EVENT_HUBS


def test_a_time_limit_that_is_no_number_is_a_fault_of_its_key() -> None:
    text = f"{FILE}target.producer.request.timeout.ms=long\n"
    report = validate_file(parse_properties(text.encode(), file="f"), {}, worker_start_checks({}))
    [fault] = [one for one in report.errors if "request.timeout.ms" in one.message]
    assert (fault.key, fault.line) == ("target.producer.request.timeout.ms", 5)
