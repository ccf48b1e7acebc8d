"""What a transformation and a predicate are, and which parts of a record they touch."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from sparkmirror.transforms.record import ConnectRecord


class RecordPart(Enum):
    """A part of a record that a transformation reads or writes."""

    TOPIC = "topic"
    PARTITION = "partition"
    TIMESTAMP = "timestamp"
    HEADERS = "headers"
    KEY = "key"
    VALUE = "value"


NO_PARTS: frozenset[RecordPart] = frozenset()


class Transformation(Protocol):
    """A configured transformation. Has no state that a record could change."""

    @property
    def reads(self) -> frozenset[RecordPart]:
        """The parts whose content decides what the transformation does."""

    @property
    def writes(self) -> frozenset[RecordPart]:
        """The parts that the transformation may change."""

    @property
    def drops(self) -> bool:
        """Whether the transformation drops the records that it is applied to."""

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """The record afterwards; None if it is dropped. Raises TransformError."""


class Predicate(Protocol):
    """A configured condition."""

    @property
    def reads(self) -> frozenset[RecordPart]:
        """The parts whose content decides whether the condition is true."""

    def test(self, record: ConnectRecord) -> bool:
        """Whether the condition is true for the record."""
