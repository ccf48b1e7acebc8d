"""Which parts of a record a chain reads and writes, so that a caller can choose a lane."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config.definition.java_classes import PREDICATES, TRANSFORMATIONS
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_parts import ChainParts, chain_parts
from sparkmirror.transforms.transformation import RecordPart
from tests.support.golden import from_base64, golden_lines

ENVIRONMENT = JavaEnvironment(now_ms=1_790_000_000_000)
PACKAGE = "org.apache.kafka.connect.transforms."
TOPIC, HEADERS, KEY, VALUE, TIMESTAMP, PARTITION = (
    RecordPart.TOPIC,
    RecordPart.HEADERS,
    RecordPart.KEY,
    RecordPart.VALUE,
    RecordPart.TIMESTAMP,
    RecordPart.PARTITION,
)
FIELD_KEYS = {
    "Cast": {"spec": "int8"},
    "ExtractField": {"field": "f"},
    "Flatten": {},
    "HoistField": {"field": "f"},
    "InsertField": {"static.field": "f", "static.value": "x"},
    "MaskField": {"fields": "f"},
    "ReplaceField": {},
    "SetSchemaMetadata": {"schema.name": "n"},
    "TimestampConverter": {"target.type": "unix"},
}
"""The transformations that read and write the one part that they are a variant of."""
OTHERS: dict[str, tuple[dict[str, str], set[RecordPart], set[RecordPart]]] = {
    "RegexRouter": ({"regex": "a", "replacement": "b"}, {TOPIC}, {TOPIC}),
    "TimestampRouter": ({}, {TOPIC, TIMESTAMP}, {TOPIC}),
    "DropHeaders": ({"headers": "h"}, {HEADERS}, {HEADERS}),
    "InsertHeader": ({"header": "h", "value.literal": "1"}, set(), {HEADERS}),
    "Filter": ({}, set(), set()),
    "ValueToKey": ({"fields": "f"}, {VALUE}, {KEY}),
    "HeaderFrom$Key": (
        {"fields": "f", "headers": "h", "operation": "copy"},
        {KEY},
        {HEADERS},
    ),
    "HeaderFrom$Value": (
        {"fields": "f", "headers": "h", "operation": "move"},
        {VALUE},
        {VALUE, HEADERS},
    ),
}
"""Keys, parts that are read, and parts that are written."""
CONDITIONS: dict[str, tuple[dict[str, str], RecordPart]] = {
    "HasHeaderKey": ({"name": "h"}, HEADERS),
    "RecordIsTombstone": ({}, VALUE),
    "TopicNameMatches": ({"pattern": "a"}, TOPIC),
}


def parts_of(*transforms: dict[str, str], **predicates: dict[str, str]) -> ChainParts:
    """The parts of a chain of transformations, each given as its keys without a prefix."""
    props = {"transforms": ",".join(f"t{index}" for index in range(len(transforms)))}
    for index, keys in enumerate(transforms):
        props |= {f"transforms.t{index}.{key}": text for key, text in keys.items()}
    props["predicates"] = ",".join(predicates)
    for alias, keys in predicates.items():
        props |= {f"predicates.{alias}.{key}": text for key, text in keys.items()}
    return chain_parts(transformation_chain(props, ENVIRONMENT))


@pytest.mark.parametrize("name", FIELD_KEYS)
def test_a_field_transformation_touches_the_part_of_its_variant(name: str) -> None:
    for variant, part in (("$Key", KEY), ("$Value", VALUE)):
        parts = parts_of({"type": f"{PACKAGE}{name}{variant}", **FIELD_KEYS[name]})
        assert parts == ChainParts(frozenset({part}), frozenset({part}), drops=False)
        assert not parts.needs_topic_and_headers_only


@pytest.mark.parametrize("name", OTHERS)
def test_other_transformations_say_what_they_touch(name: str) -> None:
    keys, reads, writes = OTHERS[name]
    parts = parts_of({"type": PACKAGE + name, **keys})
    assert parts.reads == reads
    assert parts.writes == writes
    assert parts.drops == (name == "Filter")


def test_every_class_of_connect_is_in_these_tables() -> None:
    simple = {name.rpartition(".")[2].partition("$")[0] for name in TRANSFORMATIONS}
    assert simple == {*FIELD_KEYS, *(name.partition("$")[0] for name in OTHERS)}
    assert {name.rpartition(".")[2] for name in PREDICATES} == set(CONDITIONS)


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_predicate_adds_what_it_reads(name: str) -> None:
    keys, part = CONDITIONS[name]
    parts = parts_of(
        {"type": "Filter", "predicate": "p"},
        p={"type": f"{PACKAGE}predicates.{name}", **keys},
    )
    assert parts == ChainParts(frozenset({part}), frozenset(), drops=True)


def test_a_predicate_that_no_stage_uses_adds_nothing() -> None:
    parts = parts_of(
        {"type": "RegexRouter", "regex": "a", "replacement": "b"},
        p={"type": f"{PACKAGE}predicates.RecordIsTombstone"},
    )
    assert parts.reads == {TOPIC}


def test_a_field_that_is_inserted_is_read() -> None:
    inserted = {"topic.field": "t", "partition.field": "p", "timestamp.field": "ts"}
    parts = parts_of({"type": f"{PACKAGE}InsertField$Value", **inserted})
    assert parts.reads == {VALUE, TOPIC, PARTITION, TIMESTAMP}
    assert parts.writes == {VALUE}


def test_routers_and_headers_need_no_values() -> None:
    parts = parts_of(
        {"type": "RegexRouter", "regex": "a", "replacement": "b"},
        {"type": "DropHeaders", "headers": "h"},
        {"type": "Filter", "predicate": "p"},
        p={"type": f"{PACKAGE}predicates.HasHeaderKey", "name": "pii"},
    )
    assert parts.needs_topic_and_headers_only
    assert parts.routes
    assert parts.drops


def test_the_empty_chain_touches_nothing() -> None:
    assert parts_of() == ChainParts(frozenset(), frozenset(), drops=False)


BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
RECORDED = [
    case
    for case in golden_lines("transforms/transforms.jsonl")
    if case["layer"] == "A"
    and "result" in case
    and set(case["converters"].values()) == {BYTES}
    and "timezone" not in case
]
REFUSED_PATTERNS = {"A-RegexRouter-536c37e4", "A-RegexRouter-5c256c02"}
OTHER_CONFIGS = {"A-Config-852666e8"}


def record_of(record: dict[str, Any]) -> KafkaRecord:
    return KafkaRecord(
        record["topic"],
        record["partition"],
        None if record["timestamp"] == -1 else record["timestamp"],
        from_base64(record["key_base64"]),
        from_base64(record["value_base64"]),
        tuple((name, from_base64(data)) for name, data in record["headers"]),
    )


@pytest.mark.parametrize(
    "case",
    [case for case in RECORDED if case["id"] not in REFUSED_PATTERNS | OTHER_CONFIGS],
    ids=lambda case: str(case["id"]),
)
def test_parts_that_are_not_read_do_not_change_what_is_sent(case: dict[str, Any]) -> None:
    """A connector's transformer leaves such parts alone. Java reads and writes all of them."""
    transformer = connector_transformer(case["config"], ENVIRONMENT)
    parts = chain_parts(transformation_chain(case["config"], ENVIRONMENT))
    for record, result in zip(case["records"], case["result"], strict=True):
        given = record_of(record)
        source = given._replace(timestamp=record["timestamp"])
        outcome = transformer.transform(source)
        assert isinstance(outcome, KafkaRecord) == ("topic" in result)
        if isinstance(outcome, KafkaRecord):
            assert outcome == record_of(result)
            for part in set(RecordPart) - parts.writes:
                assert getattr(outcome, part.value) == getattr(given, part.value)
