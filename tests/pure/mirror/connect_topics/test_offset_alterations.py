"""Upstream's alterOffsets tests for the three connectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sparkmirror.errors import OffsetsRejected
from sparkmirror.mirror.connect_topics.offset_alterations import (
    CHECKPOINT_RULES,
    HEARTBEAT_RULES,
    SOURCE_RULES,
    OffsetAlteration,
    OffsetAlterationRules,
    normalize_alterations,
    validate_alterations,
)


@dataclass(frozen=True)
class ConnectorKind:
    rules: OffsetAlterationRules
    partition: dict[str, Any]

    def alter(self, partition: Any = None, offset: Any = None) -> None:
        where = self.partition if partition is None else partition
        what = {"offset": 0} if offset is None else offset
        validate_alterations(normalize_alterations([OffsetAlteration(where, what)]), self.rules)


KINDS = {
    "source": ConnectorKind(SOURCE_RULES, {"cluster": "A", "topic": "t", "partition": 3}),
    "checkpoint": ConnectorKind(CHECKPOINT_RULES, {"group": "g", "topic": "A.t", "partition": 3}),
    "heartbeat": ConnectorKind(
        HEARTBEAT_RULES, {"sourceClusterAlias": "A", "targetClusterAlias": "B"}
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> ConnectorKind:
    return KINDS[request.param]


def test_alter_offsets_incorrect_partition_key(kind: ConnectorKind) -> None:
    with pytest.raises(OffsetsRejected, match="is missing the '.*' key, which is required"):
        kind.alter(partition={"unused_key": "unused"})
    with pytest.raises(OffsetsRejected, match="Source partitions may not be null"):
        validate_alterations([OffsetAlteration(None, {"offset": 0})], kind.rules)


def test_alter_offsets_missing_partition_key(kind: ConnectorKind) -> None:
    for key in kind.partition:
        rest = {name: value for name, value in kind.partition.items() if name != key}
        with pytest.raises(OffsetsRejected, match=f"is missing the '{key}' key"):
            kind.alter(partition=rest)
    kind.alter()


@pytest.mark.parametrize("name", ["source", "checkpoint"])
@pytest.mark.parametrize(
    ("number", "rule"),
    [
        ("a string", "which must be an integer"),
        (True, "which must be an integer"),
        (2**31, "which must be an integer"),
        (-(2**31), "which cannot be negative"),
        (-1, "which cannot be negative"),
    ],
)
def test_alter_offsets_invalid_partition_partition(name: str, number: Any, rule: str) -> None:
    kind = KINDS[name]
    with pytest.raises(OffsetsRejected, match=rule):
        kind.alter(partition=kind.partition | {"partition": number})
    kind.alter(partition=kind.partition | {"partition": 2**31 - 1})


def test_alter_offsets_multiple_partitions(kind: ConnectorKind) -> None:
    other = dict.fromkeys(kind.partition, 0) | {k: f"{v}2" for k, v in kind.partition.items()}
    good = OffsetAlteration(kind.partition, {"offset": 0})
    with pytest.raises(OffsetsRejected):
        validate_alterations([good, OffsetAlteration(other, {"wrong": 0})], kind.rules)
    validate_alterations([good, good], kind.rules)


def test_alter_offsets_incorrect_offset_key(kind: ConnectorKind) -> None:
    with pytest.raises(OffsetsRejected, match="is missing the 'offset' key, which is required"):
        kind.alter(offset={"unused_offset_key": 0})


def test_alter_offsets_offset_values(kind: ConnectorKind) -> None:
    for wrong in (None, "nope", True, 1.5):
        with pytest.raises(OffsetsRejected, match="which must be an integer"):
            kind.alter(offset={"offset": wrong})
    with pytest.raises(OffsetsRejected, match="cannot be negative|the only accepted value is 0"):
        kind.alter(offset={"offset": -1})
    kind.alter(offset={"offset": 0})
    if kind.rules.only_zero:
        with pytest.raises(OffsetsRejected, match="; the only accepted value is 0"):
            kind.alter(offset={"offset": 10})
    else:
        kind.alter(offset={"offset": 2**63 - 1})


def test_successful_alter_offsets(kind: ConnectorKind) -> None:
    kind.alter()
    validate_alterations([], kind.rules)


def test_alter_offsets_tombstones(kind: ConnectorKind) -> None:
    for partition in (kind.partition, {"unused_key": "x"}, {}, None):
        validate_alterations(normalize_alterations([OffsetAlteration(partition, None)]), kind.rules)


@pytest.mark.parametrize(
    ("value", "what"),
    [([1], "ARRAY"), ({"a": 1}, "MAP"), (2**63, "class java.math.BigInteger")],
)
def test_only_plain_values_are_stored(value: Any, what: str) -> None:
    with pytest.raises(OffsetsRejected, match=f"but field x contains {what}"):
        normalize_alterations([OffsetAlteration({"x": value}, None)])
    with pytest.raises(OffsetsRejected, match=f"but field x contains {what}"):
        normalize_alterations([OffsetAlteration({}, {"x": value})])


def test_the_last_of_two_alterations_of_one_partition_wins() -> None:
    first = OffsetAlteration({"a": 1, "topic": "t"}, {"offset": 4})
    second = OffsetAlteration({"topic": "t", "a": 1}, {"offset": 5})
    assert normalize_alterations([first, second]) == [second]
