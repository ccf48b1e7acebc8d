"""Offsets of partitions as JSON, in the form of Spark's own Kafka source. Pure.

    {"orders": {"0": 23, "1": -2}}      -2 is the first offset of the log, -1 its end

The same form is in options (`startingOffsets`), in `assign` without the offsets, and in the
checkpoint of a streaming query. `startingOffsetsByTimestamp` has times in place of offsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from sparkmirror.errors import ConfigError
from sparkmirror.model import MAX_PARTITION, TopicPartition
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST

PartitionOffsets = dict[TopicPartition, int]
OffsetsJson = dict[str, dict[str, int]]

_NAMES = {"earliest": EARLIEST, "latest": LATEST}
_OFFSETS_EXAMPLE = '{"orders": {"0": 23, "1": -2}}'
_TIMES_EXAMPLE = '{"orders": {"0": 1767225600000}} with milliseconds since 1970'
_PARTITIONS_EXAMPLE = '{"orders": [0, 1]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetPositions:
    """Where reading starts or ends: one position for all partitions, or one for each.

    A position is an offset, EARLIEST or LATEST; with `are_times` the time of a record, in ms.
    """

    common: int | None = None
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    are_times: bool = False

    def position_of(self, partition: TopicPartition) -> int | None:
        """Return the position of a partition; None if there is none."""
        return self.by_partition.get(partition) if self.common is None else self.common


def parse_positions(option: str, text: str, *, excluded: int | None = None) -> OffsetPositions:
    """Read the value of `startingOffsets` or `endingOffsets`. Raises ConfigError.

    `excluded` is EARLIEST or LATEST if that makes no sense for the option.
    """
    common = _NAMES.get(text.strip().lower())
    if common is not None:
        positions = OffsetPositions(common=common)
    else:
        forms = f"earliest, latest or {_OFFSETS_EXAMPLE}"
        offsets = _parse_numbers(option, text, minimum=EARLIEST, forms=forms)
        positions = OffsetPositions(by_partition=offsets)
    if excluded is not None and excluded in (common, *positions.by_partition.values()):
        (name,) = (name for name, position in _NAMES.items() if position == excluded)
        raise ConfigError.of(
            option, f"{option} {text}: {name} ({excluded}) leaves nothing to read; name an offset"
        )
    return positions


def parse_time(option: str, text: str) -> OffsetPositions:
    """Read the value of `startingTimestamp` or `endingTimestamp`. Raises ConfigError."""
    if not text.strip().isdecimal():
        raise _form_error(option, text, "milliseconds since 1970")
    return OffsetPositions(common=int(text), are_times=True)


def parse_times(option: str, text: str) -> OffsetPositions:
    """Read the value of `startingOffsetsByTimestamp` or `endingOffsetsByTimestamp`."""
    times = _parse_numbers(option, text, minimum=0, forms=_TIMES_EXAMPLE)
    return OffsetPositions(by_partition=times, are_times=True)


def parse_assignment(option: str, text: str) -> tuple[TopicPartition, ...]:
    """Read the value of `assign`. Raises ConfigError."""
    found: set[TopicPartition] = set()
    for topic, numbers in _parse_object(text).items():
        for number in numbers if isinstance(numbers, list) else (None,):
            if not _is_int(number) or not 0 <= number <= MAX_PARTITION:
                raise _form_error(option, text, _PARTITIONS_EXAMPLE)
            found.add(TopicPartition(topic, number))
    if not found:
        raise _form_error(option, text, _PARTITIONS_EXAMPLE)
    return tuple(sorted(found))


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> OffsetsJson:
    """Return offsets as an object by topic and partition, in their order."""
    result: OffsetsJson = {}
    for partition in sorted(offsets):
        result.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return result


def offsets_from_json(content: OffsetsJson) -> PartitionOffsets:
    """Return what `offsets_to_json` has written."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, offsets in content.items()
        for number, offset in offsets.items()
    }


def _parse_numbers(option: str, text: str, *, minimum: int, forms: str) -> PartitionOffsets:
    error = _form_error(option, text, forms)
    found: PartitionOffsets = {}
    for topic, numbers in _parse_object(text).items():
        if not isinstance(numbers, dict):
            raise error
        for partition, number in numbers.items():
            if not partition.isdecimal() or not _is_int(number) or number < minimum:
                raise error
            found[TopicPartition(topic, int(partition))] = number
    if not found:
        raise error
    return found


def _parse_object(text: str) -> dict[str, Any]:
    """Return the members of a JSON object; none if the text is anything else."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return content if isinstance(content, dict) else {}


def _is_int(number: object) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool)


def _form_error(option: str, text: str, forms: str) -> ConfigError:
    return ConfigError.of(option, f"{option} {text} is not of a known form; write {forms}")
