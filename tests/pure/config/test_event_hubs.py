"""Azure Event Hubs as the target: values where no key sets one, shown by validate and explain."""

from __future__ import annotations

import pytest

from sparkmirror.config.event_hubs import event_hubs_defaults, event_hubs_notice, is_event_hubs
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
    client=lambda _: (), rest=lambda _, __: (), connector=lambda _, __: ()
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
    assert event_hubs_defaults(producer) == {"compression.type": "none"}
    both = producer | {"compression.type": "gzip"}
    assert event_hubs_defaults(both) == {}
    assert event_hubs_notice(both, "bootstrap.servers", 3) is None


def test_validate_names_the_values() -> None:
    report = validate_file(parse_properties(FILE.encode(), file="f"), {}, NO_CHECKS)
    (notice,) = [one for one in report.notices if one.kind is NoticeKind.EVENT_HUBS]
    assert (notice.key, notice.line) == ("target.bootstrap.servers", 3)
    assert "max.request.size=1000000 and compression.type=none" in notice.message


def test_validate_names_the_values_of_a_worker_file() -> None:
    text = f"""bootstrap.servers={HUBS}
group.id=g
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
offset.storage.topic=o
config.storage.topic=c
status.storage.topic=s
producer.max.request.size=900000
"""
    report = validate_file(parse_properties(text.encode(), file="f"), {}, NO_CHECKS)
    (notice,) = [one for one in report.notices if one.kind is NoticeKind.EVENT_HUBS]
    assert (notice.key, notice.line) == ("bootstrap.servers", 1)
    assert "uses compression.type=none, because no key sets it" in notice.message


@pytest.mark.parametrize(
    ("more", "value", "rule"),
    [
        ("", "1000000", PrecedenceRule.EVENT_HUBS),
        ("target.producer.max.request.size=7\n", "7", PrecedenceRule.CLUSTER),
    ],
)
def test_explain_says_where_a_value_comes_from(more: str, value: str, rule: PrecedenceRule) -> None:
    config = MirrorMakerConfig.open(parse_properties((FILE + more).encode(), file="f"), {})
    found = explain(config, FLOW, FlowPart.SOURCE, "producer.override.max.request.size")
    assert (found.value, found.origin.rule, found.is_read) == (value, rule, True)
