"""Every value is explained by its line and by the values that it overrides."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.files.provenance import PrecedenceRule
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.explain import SettingExplanation, explain, explain_all
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.config.secrets.redaction import redact_value
from sparkmirror.errors import ConfigError
from sparkmirror.model import SourceAndTarget

A_TO_B = SourceAndTarget("A", "B")
FILE = """clusters=A,B
A.bootstrap.servers=a:1
B.bootstrap.servers=b:1
tasks.max=2
tasks.max=3
A->B.tasks.max=4
security.protocol=PLAINTEXT
B.security.protocol=SSL
B.ssl.key.password=hunter2
B.offset.storage.replication.factor=2
offset.storage.replication.factor=1
A->B.unknown=5
"""


def opened(text: str = FILE) -> MirrorMakerConfig:
    return MirrorMakerConfig.open(parse_properties(text.encode(), file="mm2.properties"), {})


def steps(found: SettingExplanation) -> list[tuple[str | None, PrecedenceRule, int | None]]:
    """The value and the values that it overrides, each as (value, rule, line)."""
    overridden = [(lost.value, lost.origin.rule, lost.origin.line) for lost in found.overridden]
    return [(found.value, found.origin.rule, found.origin.line), *overridden]


def test_a_flow_wins_over_the_top_level_and_the_default() -> None:
    assert steps(explain(opened(), A_TO_B, FlowPart.SOURCE, "tasks.max")) == [
        ("4", PrecedenceRule.FLOW, 6),
        ("3", PrecedenceRule.TOP_LEVEL, 5),
        ("1", PrecedenceRule.DEFAULT, None),
    ]


def test_an_earlier_line_with_the_same_key_is_overridden() -> None:
    back = SourceAndTarget("B", "A")
    assert steps(explain(opened(), back, FlowPart.SOURCE, "tasks.max")) == [
        ("3", PrecedenceRule.TOP_LEVEL, 5),
        ("2", PrecedenceRule.TOP_LEVEL, 4),
        ("1", PrecedenceRule.DEFAULT, None),
    ]


def test_a_key_of_a_cluster_wins_over_the_key_for_all_clusters() -> None:
    found = explain(opened(), A_TO_B, FlowPart.SOURCE, "target.producer.security.protocol")
    assert steps(found) == [
        ("SSL", PrecedenceRule.CLUSTER, 8),
        ("PLAINTEXT", PrecedenceRule.EVERY_CLUSTER, 7),
        ("PLAINTEXT", PrecedenceRule.DEFAULT, None),
    ]


def test_for_storage_keys_the_top_level_wins_over_the_cluster() -> None:
    found = explain(opened(), A_TO_B, FlowPart.WORKER, "offset.storage.replication.factor")
    assert steps(found) == [
        ("1", PrecedenceRule.TOP_LEVEL, 11),
        ("2", PrecedenceRule.CLUSTER, 10),
        ("3", PrecedenceRule.DEFAULT, None),
    ]


def test_a_value_that_the_file_does_not_set_is_derived_or_a_default() -> None:
    assert steps(explain(opened(), A_TO_B, FlowPart.WORKER, "group.id"))[0] == (
        "A-mm2",
        PrecedenceRule.DERIVED,
        None,
    )
    assert steps(explain(opened(), A_TO_B, FlowPart.CHECKPOINT, "groups")) == [
        (".*", PrecedenceRule.DEFAULT, None)
    ]


def test_a_secret_is_hidden_in_every_step() -> None:
    found = explain(
        opened(FILE + "B.ssl.key.password=hunter3\n"), A_TO_B, FlowPart.WORKER, "ssl.key.password"
    )
    assert steps(found)[:2] == [
        ("[hidden]", PrecedenceRule.CLUSTER, 13),
        ("[hidden]", PrecedenceRule.CLUSTER, 9),
    ]
    assert "hunter" not in repr(found)


def test_a_key_that_no_code_reads_is_marked_unread() -> None:
    assert not explain(opened(), A_TO_B, FlowPart.SOURCE, "unknown").is_read
    assert explain(opened(), A_TO_B, FlowPart.SOURCE, "tasks.max").is_read


TUNED_KEYS = """A.consumer.fetch.min.bytes=1
A.consumer.isolation.level=read_uncommitted
A.consumer.client.rack=r
A.ssl.provider=P
A.ssl.keystore.location=/key.pem
B.producer.linger.ms=5
B.producer.transaction.timeout.ms=5000
B.request.timeout.ms=7000
B.status.storage.replication.factor=1
A->B.topic.creation.default.partitions=2
A->B.errors.tolerance=all
A->B.key.converter.schemas.enable=false
A->B.producer.override.compression.type=zstd
A->B.producer.override.batch.size=5
"""


@pytest.mark.parametrize(
    ("part", "key", "reason"),
    [
        (FlowPart.SOURCE, "source.consumer.fetch.min.bytes", "it tunes a client of Kafka"),
        (FlowPart.SOURCE, "source.consumer.isolation.level", ""),
        (FlowPart.SOURCE, "source.consumer.client.rack", ""),
        (FlowPart.CHECKPOINT, "source.consumer.isolation.level", "it tunes a client of Kafka"),
        (FlowPart.HEARTBEAT, "source.consumer.client.rack", "has no such client"),
        (FlowPart.SOURCE, "source.consumer.ssl.provider", "a part of a Java runtime"),
        (FlowPart.SOURCE, "source.consumer.ssl.keystore.location", ""),
        (FlowPart.SOURCE, "producer.override.linger.ms", "it tunes a client of Kafka"),
        (FlowPart.SOURCE, "producer.override.compression.type", ""),
        (FlowPart.SOURCE, "producer.override.batch.size", "it tunes a client of Kafka"),
        (FlowPart.SOURCE, "producer.override.transaction.timeout.ms", ""),
        (FlowPart.WORKER, "producer.linger.ms", "it tunes a client of Kafka"),
        (FlowPart.WORKER, "producer.transaction.timeout.ms", ""),
        (FlowPart.WORKER, "request.timeout.ms", "it tunes Kafka's Java clients"),
        (FlowPart.WORKER, "status.storage.replication.factor", ""),
        (FlowPart.SOURCE, "topic.creation.default.partitions", "a mirror creates its topics"),
        (FlowPart.SOURCE, "errors.tolerance", ""),
        (FlowPart.HEARTBEAT, "errors.tolerance", "only source connectors apply transformations"),
        (FlowPart.SOURCE, "key.converter.schemas.enable", "records are copied as bytes"),
        (FlowPart.SOURCE, "errors.retry.timeout", "is not tried again"),
    ],
)
def test_a_key_without_effect_says_why(part: FlowPart, key: str, reason: str) -> None:
    found = explain(opened(FILE + TUNED_KEYS), A_TO_B, part, key)
    assert reason in found.no_effect
    assert found.is_read == (not reason)
    assert bool(found.no_effect) == bool(reason)


def test_a_setting_that_does_not_exist_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"has no setting task\.max; did you mean tasks\.max\?"):
        explain(opened(), A_TO_B, FlowPart.SOURCE, "task.max")


CLIENT_KEYS = """A.consumer.max.poll.records=1
A->B.consumer.max.poll.records=2
A->B.consumer.isolation.level=read_committed
A->B.source.consumer.isolation.level=read_uncommitted
B.producer.linger.ms=3
A->B.producer.override.acks=all
B.producer.acks=1
A->B.consumer.enable.auto.commit=true
"""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (
            "source.consumer.max.poll.records",
            [("1", PrecedenceRule.CLUSTER, 13), ("2", PrecedenceRule.FLOW, 14)],
        ),
        ("target.consumer.max.poll.records", [("2", PrecedenceRule.FLOW, 14)]),
        (
            "source.consumer.isolation.level",
            [
                ("read_uncommitted", PrecedenceRule.FLOW, 16),
                ("read_committed", PrecedenceRule.FLOW, 15),
            ],
        ),
        ("producer.override.linger.ms", [("3", PrecedenceRule.CLUSTER, 17)]),
        (
            "producer.override.acks",
            [("all", PrecedenceRule.FLOW, 18), ("1", PrecedenceRule.CLUSTER, 19)],
        ),
        ("producer.override.bootstrap.servers", [("b:1", PrecedenceRule.CLUSTER, 3)]),
        ("source.consumer.auto.offset.reset", [("earliest", PrecedenceRule.DERIVED, None)]),
        (
            "source.consumer.enable.auto.commit",
            [("false", PrecedenceRule.DERIVED, None), ("true", PrecedenceRule.FLOW, 20)],
        ),
        ("source.admin.sasl.mechanism", [("GSSAPI", PrecedenceRule.DEFAULT, None)]),
    ],
)
def test_a_property_of_a_client_lists_all_keys_that_set_it(
    key: str, expected: list[tuple[str | None, PrecedenceRule, int | None]]
) -> None:
    assert steps(explain(opened(FILE + CLIENT_KEYS), A_TO_B, FlowPart.SOURCE, key)) == expected


def test_a_property_that_no_key_sets_has_no_explanation() -> None:
    with pytest.raises(ConfigError, match=r"has no setting source\.consumer\.fetch\.min\.bytes"):
        explain(opened(), A_TO_B, FlowPart.SOURCE, "source.consumer.fetch.min.bytes")


NAMES = [
    "tasks.max",
    "topics",
    "ssl.key.password",
    "offset.storage.topic",
    "producer.acks",
    "x",
    "name",
]
KEYS = st.builds(
    lambda p, n: p + n, st.sampled_from(["", "A.", "B.", "A->B.", "B->A."]), st.sampled_from(NAMES)
)


@given(st.lists(st.tuples(KEYS, st.sampled_from(["1", "2", "${a:b}"])), max_size=12))
@settings(max_examples=20, deadline=None)
def test_explanations_agree_with_the_compiled_config(lines: list[tuple[str, str]]) -> None:
    text = "clusters=A,B\n" + "".join(f"{key}={value}\n" for key, value in lines)
    config = opened(text)
    written = {entry.line: entry for entry in config.properties.entries}
    for flow in config.cluster_pairs:
        for part in FlowPart:
            layers = compiled_config(config, flow, part)
            found = explain_all(config, flow, part)
            assert [one.key for one in found] == sorted(layers)
            for one in found:
                assert one == explain(config, flow, part, one.key)
                assert one.value == redact_value(one.key, layers.props[one.key])
                if one.origin.line is not None:
                    entry = written[one.origin.line]
                    assert entry.key == one.origin.key
                    assert redact_value(one.key, entry.value) == one.value
