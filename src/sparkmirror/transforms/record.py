"""Records: as bytes from and to Kafka, and as Connect's data on their way through the chain."""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.transforms.data.java_values import ConnectValue
from sparkmirror.transforms.data.schema import Schema


class KafkaRecord(NamedTuple):
    """A record as Kafka has it. A timestamp of None is left to the producer's clock."""

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ConnectHeader(NamedTuple):
    """A header as Connect's data."""

    name: str
    schema: Schema | None
    value: ConnectValue


class ConnectRecord(NamedTuple):
    """A record as Connect's data: what a transformation gets and returns."""

    topic: str
    partition: int | None
    timestamp: int | None
    key_schema: Schema | None
    key: ConnectValue
    value_schema: Schema | None
    value: ConnectValue
    headers: tuple[ConnectHeader, ...] = ()

    def with_topic(self, topic: str) -> ConnectRecord:
        """The record with another topic; quicker than `_replace`."""
        return ConnectRecord(topic, *self[1:])
