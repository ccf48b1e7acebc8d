"""Chains of transformations for tests, and what they make of records, without batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import FailedRecord
from sparkmirror.wire.batch.records import Record

_CLASSES = "org.apache.kafka.connect.transforms"

DROP_MARKED: Mapping[str, str] = {
    "transforms": "drop,strip",
    "transforms.drop.type": f"{_CLASSES}.Filter",
    "transforms.drop.predicate": "marked",
    "predicates": "marked",
    "predicates.marked.type": f"{_CLASSES}.predicates.HasHeaderKey",
    "predicates.marked.name": "drop",
    "transforms.strip.type": f"{_CLASSES}.DropHeaders",
    "transforms.strip.headers": "pii",
}
"""Drops records with the header `drop`, and the headers `pii` of all others."""

MASK_PRICE: Mapping[str, str] = {
    "transforms": "mask",
    "transforms.mask.type": f"{_CLASSES}.MaskField$Value",
    "transforms.mask.fields": "price",
    "sparkmirror.transform.value.format": "json",
}
"""Replaces the number `price` of JSON values by 0. Values that are no objects fail."""

DROP_AND_MASK: Mapping[str, str] = {**DROP_MARKED, **MASK_PRICE, "transforms": "drop,strip,mask"}
"""Does both, for the records of `batch_writer.priced_records`."""

ROUTE_MARKED: Mapping[str, str] = {
    "transforms": "route,days",
    "transforms.route.type": f"{_CLASSES}.RegexRouter",
    "transforms.route.regex": ".*",
    "transforms.route.replacement": "marked",
    "transforms.route.predicate": "marked",
    "transforms.days.type": f"{_CLASSES}.TimestampRouter",
    "transforms.days.topic.format": "${topic}.${timestamp}",
    "transforms.days.timestamp.format": "HH",
    "transforms.days.predicate": "pii",
    "predicates": "marked,pii",
    "predicates.marked.type": f"{_CLASSES}.predicates.HasHeaderKey",
    "predicates.marked.name": "drop",
    "predicates.pii.type": f"{_CLASSES}.predicates.HasHeaderKey",
    "predicates.pii.name": "pii",
}
"""Sends records with the header `drop` to `marked`, and those with `pii` to a topic per hour."""


def transformed_records(
    transforms: Mapping[str, str], records: Iterable[Record], topic: str = "source.orders"
) -> list[Record]:
    """Return what a chain makes of records, with their source offsets; without dropped ones.

    Fails for a record that the chain refuses.
    """
    return [record for _, record in routed_records(transforms, records, topic)]


def routed_records(
    transforms: Mapping[str, str], records: Iterable[Record], topic: str
) -> list[tuple[str, Record]]:
    """Return the same, each with the topic that it goes to."""
    transformer = connector_transformer(transforms, JavaEnvironment(now_ms=0))
    kept: list[tuple[str, Record]] = []
    for record in records:
        names = tuple((name.decode(), content) for name, content in record.headers)
        outcome = transformer.transform(
            KafkaRecord(topic, 0, record.timestamp, record.key, record.value, names)
        )
        assert not isinstance(outcome, FailedRecord), outcome
        if isinstance(outcome, KafkaRecord):
            headers = tuple((name.encode(), content) for name, content in outcome.headers)
            timestamp = -1 if outcome.timestamp is None else outcome.timestamp
            made = Record(record.offset, timestamp, outcome.key, outcome.value, headers)
            kept.append((outcome.topic, made))
    return kept
