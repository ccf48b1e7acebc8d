"""Reading a range: every offset once, losses by name, and what is believed only the second time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from sparkmirror.datasource.offset_ranges import OffsetRange
from sparkmirror.datasource.range_reader import MIN_FETCH_BYTES, RangeReader
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    RecordsLost,
)
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import (
    OffsetOutOfRange,
    SingleFetchResult,
)

PARTITION = TopicPartition("t", 0)
FETCH_BYTES = 8 << 20
OUT_OF_RANGE = OffsetOutOfRange("c", "t-0 does not hold the offset")
UNAVAILABLE = ClusterUnavailable("c", "t-0: UNKNOWN_TOPIC_OR_PARTITION (3)")


@dataclass
class LogInMemory:
    """Batches of five records from `first` to `end`. Errors come before any batch."""

    first: int = 0
    end: int = 20
    errors: deque[ClusterError] = field(default_factory=deque)
    always: ClusterError | None = None
    is_there: bool = True
    cluster: str = "c"
    fetched: list[tuple[int, int]] = field(default_factory=list)
    pauses: int = 0

    def fetch(self, offset: int, max_bytes: int) -> SingleFetchResult:
        self.fetched.append((offset, max_bytes))
        if self.errors or self.always:
            raise self.errors.popleft() if self.errors else self.always or UNAVAILABLE
        if not self.first <= offset <= self.end:
            raise OUT_OF_RANGE
        return SingleFetchResult(
            records=b"".join(self._batches(offset)),
            aborted_transactions=(),
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=self.first,
        )

    def _batches(self, offset: int) -> Iterator[bytes]:
        for at in range(offset - offset % 5, self.end, 5):
            yield build_batch([Record(n, 0, None, b"%d" % n) for n in range(at, at + 5)])

    def first_offset(self) -> int:
        return self.first

    def exists(self) -> bool:
        return self.is_there

    def pause(self, seconds: float) -> None:
        self.pauses += 1


def read(records: LogInMemory, start: int, end: int, **options: float) -> list[int]:
    reader = RangeReader(
        OffsetRange(PARTITION, start, end),
        records,
        fail_on_data_loss=bool(options.pop("fail_on_data_loss", True)),
        fetch_bytes=FETCH_BYTES,
        stalled_s=options.pop("stalled_s", 60.0),
    )
    return [record.offset for batch in reader.read() for record in batch.records]


def test_a_range_is_read_from_within_a_batch_to_within_a_batch() -> None:
    assert read(LogInMemory(), 7, 13) == list(range(7, 13))


def test_batches_behind_the_range_are_not_opened() -> None:
    log = LogInMemory()
    fetched = log.fetch(0, 1)
    damaged = fetched.records[:-1] + b"?"

    class DamagedAtTheEnd(LogInMemory):
        def fetch(self, offset: int, max_bytes: int) -> SingleFetchResult:
            return SingleFetchResult(
                records=damaged,
                aborted_transactions=(),
                high_watermark=20,
                last_stable_offset=20,
                log_start_offset=0,
            )

    assert read(DamagedAtTheEnd(), 0, 15) == list(range(15))


@pytest.mark.parametrize("error", [UNAVAILABLE, ClusterTimeout("c", "late"), OUT_OF_RANGE])
def test_a_failure_that_ends_costs_no_record(error: ClusterError) -> None:
    """A former leader may say that an offset is out of range."""
    log = LogInMemory(errors=deque([error] * 3))
    assert read(log, 0, 20, fail_on_data_loss=False) == list(range(20))
    assert log.pauses == 3, "a pause after each, with a new look at the leader"


def test_after_a_failure_a_fetch_asks_for_less() -> None:
    """A response that a slow link cannot bring in time would fail for ever."""
    log = LogInMemory(errors=deque([UNAVAILABLE] * 5))
    read(log, 0, 20)
    sizes = [size for _, size in log.fetched]
    assert sizes == [FETCH_BYTES >> 2 * n for n in range(4)] + [MIN_FETCH_BYTES] * 2


def test_deleted_records_are_a_loss_at_once() -> None:
    with pytest.raises(RecordsLost, match="t-0 begins at offset 10, but 3 was next"):
        read(LogInMemory(first=10), 3, 18)
    assert read(LogInMemory(first=10), 3, 18, fail_on_data_loss=False) == list(range(10, 18))
    assert read(LogInMemory(first=10), 3, 8, fail_on_data_loss=False) == []


def test_a_log_that_stays_shorter_is_a_loss() -> None:
    with pytest.raises(RecordsLost, match="t-0 has no offset 25: its log has become shorter"):
        read(LogInMemory(), 25, 30, stalled_s=-1)
    assert read(LogInMemory(), 25, 30, stalled_s=-1, fail_on_data_loss=False) == []
    with pytest.raises(RecordsLost, match="t-0 ends at offset 20, but"):
        read(LogInMemory(), 20, 30, stalled_s=-1)


def test_a_topic_that_is_deleted_meanwhile_is_a_loss() -> None:
    log = LogInMemory(always=UNAVAILABLE, is_there=False)
    with pytest.raises(RecordsLost, match="t-0 does not exist any more; 4 was next"):
        read(log, 4, 8, stalled_s=-1)
    assert read(log, 4, 8, stalled_s=-1, fail_on_data_loss=False) == []


def test_a_cluster_that_cannot_be_read_is_no_loss() -> None:
    log = LogInMemory(always=UNAVAILABLE)
    with pytest.raises(ClusterUnavailable):
        read(log, 4, 8, stalled_s=-1, fail_on_data_loss=False)
    refused = LogInMemory(always=NotAuthorized("c", "grant Read"))
    with pytest.raises(NotAuthorized):
        read(refused, 4, 8, fail_on_data_loss=False)
    assert len(refused.fetched) == 1
