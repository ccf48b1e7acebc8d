"""Which offsets an operator may write for each connector (PATCH and DELETE .../offsets).

Two checks are Java's, with Java's messages, because operators read them over REST.
`normalize_alterations` is Connect's: primitive values only, members in HashMap order.
`validate_alterations` is the connector's. `require_own_partitions` is ours: Java stores offsets of
partitions that the connector never has, and shows them for ever. Each check refuses the whole
request at its first error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

from sparkmirror.errors import BadRequest, OffsetsRejected
from sparkmirror.mirror.connect_topics.connect_json import (
    LARGEST_INTEGER,
    SMALLEST_INTEGER,
    JsonValue,
)
from sparkmirror.mirror.connect_topics.connect_offsets import (
    SourceOffset,
    SourcePartition,
    offset_key,
)
from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order
from sparkmirror.mirror.connect_topics.java_to_string import java_to_string
from sparkmirror.model import MAX_PARTITION


class OffsetAlteration(NamedTuple):
    """Write `offset` for `partition`. None removes the stored offset."""

    partition: SourcePartition | None
    offset: SourceOffset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAlterationRules:
    """The required members of one kind of connector."""

    string_keys: tuple[str, ...]
    has_partition: bool
    only_zero: bool

    @property
    def keys(self) -> tuple[str, ...]:
        """All members of a source partition."""
        return (*self.string_keys, "partition") if self.has_partition else self.string_keys


SOURCE_RULES = OffsetAlterationRules(
    string_keys=("cluster", "topic"), has_partition=True, only_zero=False
)
CHECKPOINT_RULES = OffsetAlterationRules(
    string_keys=("group", "topic"), has_partition=True, only_zero=True
)
HEARTBEAT_RULES = OffsetAlterationRules(
    string_keys=("sourceClusterAlias", "targetClusterAlias"), has_partition=False, only_zero=True
)


def normalize_alterations(alterations: Iterable[OffsetAlteration]) -> list[OffsetAlteration]:
    """Return the alterations with members in stored order. The last of a partition wins.

    Raises OffsetsRejected for values that are not primitive.
    """
    result: dict[bytes, OffsetAlteration] = {}
    for partition, offset in alterations:
        normalized = OffsetAlteration(_normalize_members(partition), _normalize_members(offset))
        result[offset_key("", normalized.partition)] = normalized
    return list(result.values())


def validate_alterations(
    alterations: Iterable[OffsetAlteration], rules: OffsetAlterationRules
) -> None:
    """Raise OffsetsRejected unless the connector accepts every alteration."""
    for partition, offset in alterations:
        if offset is None:
            continue  # a tombstone may have any partition, so that invalid ones can be removed
        if partition is None:
            raise OffsetsRejected("Source partitions may not be null")
        for key in rules.string_keys:
            _check_string(partition, key)
        if rules.has_partition:
            _check_partition(partition)
        _check_offset(partition, offset, only_zero=rules.only_zero)


def is_removal(alterations: Iterable[OffsetAlteration]) -> bool:
    """Whether the alterations only remove offsets, as a reset does."""
    return all(offset is None for _, offset in alterations)


def require_own_partitions(
    alterations: Iterable[OffsetAlteration],
    rules: OffsetAlterationRules,
    foreign_reason: Callable[[Mapping[str, str]], str],
) -> None:
    """Raise BadRequest if the connector can never have one of the partitions.

    Requires alterations that `validate_alterations` has accepted. `foreign_reason` takes the values
    of a source partition, as texts, and returns why the connector cannot have it; empty if it can.
    An offset that is removed may have any partition.
    """
    for partition, offset in alterations:
        if partition is None or offset is None:
            continue
        others = sorted(set(partition) - set(rules.keys))
        if others:
            reason = f"its keys are {', '.join(rules.keys)}, and not {', '.join(others)}"
        else:
            reason = foreign_reason({key: str(partition[key]) for key in rules.keys})
        if reason:
            raise BadRequest(
                f"Source partition {java_to_string(partition)} cannot belong to this connector: "
                f"{reason}. No offset was changed"
            )


def _normalize_members(members: Mapping[str, JsonValue] | None) -> Mapping[str, JsonValue] | None:
    if members is None:
        return None
    for name, value in members.items():
        kind = _non_primitive_type(value)
        if kind:
            raise OffsetsRejected(
                f"Offsets may only contain primitive types as values, "
                f"but field {name} contains {kind}"
            )
    return in_hash_map_order(members)


def _non_primitive_type(value: JsonValue) -> str:
    if isinstance(value, Mapping):
        return "MAP"
    if isinstance(value, int) and not SMALLEST_INTEGER <= value <= LARGEST_INTEGER:
        return "class java.math.BigInteger"
    if value is None or isinstance(value, str | bool | int | float):
        return ""
    return "ARRAY"


def _check_string(partition: SourcePartition, key: str) -> None:
    subject = f"Source partition {java_to_string(partition)}"
    value = _required(subject, partition, key)
    if not isinstance(value, str):
        raise _invalid(subject, value, key, ", which must be a string")


def _check_partition(partition: SourcePartition) -> None:
    subject, key = f"Source partition {java_to_string(partition)}", "partition"
    number = _required(subject, partition, key)
    if not _is_integer(number) or not -MAX_PARTITION - 1 <= number <= MAX_PARTITION:
        raise _invalid(subject, number, key, ", which must be an integer")
    if number < 0:
        raise _invalid(subject, number, key, ", which cannot be negative")


def _check_offset(partition: SourcePartition, offset: SourceOffset, *, only_zero: bool) -> None:
    subject = (
        f"Source offset {java_to_string(offset)} for source partition {java_to_string(partition)}"
    )
    key = "offset"
    number = _required(subject, offset, key)
    if not _is_integer(number):
        raise _invalid(subject, number, key, ", which must be an integer")
    if only_zero and number != 0:
        raise _invalid(subject, number, key, "; the only accepted value is 0")
    if number < 0:
        raise _invalid(subject, number, key, ", which cannot be negative")


def _required(subject: str, members: Mapping[str, JsonValue], key: str) -> JsonValue:
    if key not in members:
        raise OffsetsRejected(f"{subject} is missing the '{key}' key, which is required")
    return members[key]


def _is_integer(value: JsonValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(subject: str, value: JsonValue, key: str, rule: str) -> OffsetsRejected:
    return OffsetsRejected(
        f"{subject} has an invalid value {java_to_string(value)} for the '{key}' key{rule}"
    )
