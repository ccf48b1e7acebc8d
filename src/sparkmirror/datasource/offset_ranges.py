"""Ranges of offsets: how many to read now, what is still there, and the parts for tasks. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.datasource.offset_positions import PartitionOffsets
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """The offsets of a partition from `start` to before `end`."""

    partition: TopicPartition
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.partition} [{self.start}, {self.end})"


def limit_ends(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], max_offsets: int
) -> PartitionOffsets:
    """Return ends with about `max_offsets` offsets behind the starts, in proportion to the lags.

    As in Spark's own source, each partition that has records gets at least one offset, so that
    none waits for ever.
    """
    lags = {partition: ends[partition] - start for partition, start in starts.items()}
    total = sum(lag for lag in lags.values() if lag > 0)
    if total <= max_offsets:
        return dict(ends)
    limited = dict(ends)
    for partition, lag in lags.items():
        if lag > 0:
            share = max(1, math.floor(max_offsets * lag / total))
            limited[partition] = starts[partition] + min(share, lag)
    return limited


def readable_ranges(
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
) -> tuple[list[OffsetRange], list[str]]:
    """Return what is still there of what is to be read, and a sentence for each loss.

    Of a log that ends before its start nothing is read: it was truncated, and most of its records
    were read before. As in Spark's own source, reading goes on at its end.
    """
    ranges: list[OffsetRange] = []
    losses: list[str] = []
    for partition, start in sorted(starts.items()):
        first, end = earliest.get(partition), ends[partition]
        if start >= end:
            continue
        if first is None:
            losses.append(gone_sentence(partition, start))
            continue
        if start < first:
            losses.append(f"{partition} begins at offset {first}, but offset {start} was next")
        if max(start, first) < end:
            ranges.append(OffsetRange(partition, max(start, first), end))
    return ranges, losses


def gone_sentence(partition: TopicPartition, offset: int) -> str:
    """Say that a partition is gone."""
    return f"{partition} does not exist any more; offset {offset} was next"


def shorter_sentence(partition: TopicPartition, end: int, offset: int) -> str:
    """Say that a log ends before the next offset."""
    return f"{partition} ends at offset {end}, but offset {offset} was next"


def split_ranges(ranges: Sequence[OffsetRange], min_ranges: int) -> list[OffsetRange]:
    """Divide ranges until there are at least `min_ranges`, the long ones into more parts.

    Ranges of fewer offsets than parts stay as they are, so that the result may have fewer.
    """
    total = sum(one.end - one.start for one in ranges)
    if len(ranges) >= min_ranges or not total:
        return list(ranges)
    return [
        part
        for one in ranges
        for part in _split(one, math.ceil((one.end - one.start) * min_ranges / total))
    ]


def limit_lengths(ranges: Sequence[OffsetRange], max_length: int) -> list[OffsetRange]:
    """Divide ranges into parts of at most `max_length` offsets."""
    return [
        part
        for one in ranges
        for part in _split(one, math.ceil((one.end - one.start) / max_length))
    ]


def _split(one: OffsetRange, parts: int) -> list[OffsetRange]:
    length = one.end - one.start
    count = max(1, min(parts, length))
    bounds = [one.start + length * number // count for number in range(count + 1)]
    return [
        OffsetRange(one.partition, start, end)
        for start, end in zip(bounds, bounds[1:], strict=False)
    ]
