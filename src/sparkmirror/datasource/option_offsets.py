"""The offsets that the options of a source mean in the logs of now. Runs in Spark's driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.datasource.offset_positions import OffsetPositions, PartitionOffsets
from sparkmirror.datasource.options import (
    ENDING,
    STARTING,
    STARTING_BY_TIME_STRATEGY,
    SourceOptions,
)
from sparkmirror.datasource.subscription import SourceLogs
from sparkmirror.errors import ConfigError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST


class OptionOffsets:
    """Resolves positions and times. Blocks. Raises ClusterError, and ConfigError for options."""

    def __init__(self, options: SourceOptions, logs: SourceLogs) -> None:
        self._options = options
        self._logs = logs

    def ends(self, latest: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """Return where a batch ends, by the partitions of `latest`. May be beyond a log's end."""
        positions = self._resolve(ENDING, self._options.ending, latest)
        return {p: latest[p] if end == LATEST else end for p, end in positions.items()}

    def starts(self, ends: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """Return where reading begins, by the partitions of `ends`."""
        positions = self._resolve(STARTING, self._options.starting, ends)
        at_first = [p for p, position in positions.items() if position == EARLIEST]
        earliest = self._logs.earliest(at_first) if at_first else {}
        starts: PartitionOffsets = {}
        for partition, position in positions.items():
            if position == LATEST:
                starts[partition] = ends[partition]
            elif position == EARLIEST:
                starts[partition] = min(earliest.get(partition, 0), ends[partition])
            elif self._options.starting.are_times:
                starts[partition] = min(position, ends[partition])
            else:
                starts[partition] = position
        self._check_order(starts)
        return starts

    def _check_order(self, starts: Mapping[TopicPartition, int]) -> None:
        """Raise ConfigError if offsets of the options end before they start."""
        positions = self._options.ending
        if positions.are_times or self._options.starting.are_times:
            return
        ends = {partition: positions.position_of(partition) for partition in starts}
        reversed_ = [p for p, end in ends.items() if end is not None and LATEST < end < starts[p]]
        if reversed_:
            raise ConfigError.of(
                ENDING,
                f"{ENDING} is before {STARTING} in {_listed(reversed_)}; correct one of them",
            )

    def _resolve(
        self, option: str, positions: OffsetPositions, logs: Mapping[TopicPartition, int]
    ) -> PartitionOffsets:
        """Return an offset, EARLIEST or LATEST for each of the logs."""
        found = {partition: positions.position_of(partition) for partition in logs}
        missing = sorted(partition for partition, at in found.items() if at is None)
        if missing:
            raise ConfigError.of(option, f"{option} has no offset for {_listed(missing)}; add it")
        unknown = sorted(positions.by_partition.keys() - logs.keys())
        if unknown:
            raise ConfigError.of(
                option, f"{option} has an offset for {_listed(unknown)}, not read here; remove it"
            )
        known = {partition: at for partition, at in found.items() if at is not None}
        return self._at_times(option, known) if positions.are_times else known

    def _at_times(self, option: str, times: Mapping[TopicPartition, int]) -> PartitionOffsets:
        """Return offsets for times: the first record at or after it, or the end if that may be."""
        offsets = self._logs.at_times(times) if times else {}
        later = sorted(p for p in times if offsets.get(p) is None)
        if later and option == STARTING and not self._options.none_at_time_is_latest:
            raise ConfigError.of(
                option,
                f"{_listed(later)} has no record at or after the starting time; choose an earlier"
                f" one, or set {STARTING_BY_TIME_STRATEGY} to latest",
            )
        return {p: LATEST if (at := offsets.get(p)) is None else at for p in times}


def _listed(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
