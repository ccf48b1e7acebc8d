"""Ranges of offsets: how many to read now, and how to divide them among tasks. Pure."""

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


def _split(one: OffsetRange, parts: int) -> list[OffsetRange]:
    length = one.end - one.start
    count = max(1, min(parts, length))
    bounds = [one.start + length * number // count for number in range(count + 1)]
    return [
        OffsetRange(one.partition, start, end)
        for start, end in zip(bounds, bounds[1:], strict=False)
    ]
