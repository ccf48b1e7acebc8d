"""Reading a compacted topic: all partitions, from their beginning to their end and on.

The one place that reads Connect's topics: `history` is for who wants to know once, `poll` for who
follows. Brokers may die, restart and move meanwhile. Blocks; belongs to the thread of its router.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sparkmirror.backoff import Backoff
from sparkmirror.errors import ClusterError, ClusterUnavailable, TopicMissing
from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.committed_records import CommittedRecordReader
from sparkmirror.store.compacted_log import ConsumedRecord
from sparkmirror.store.topic_fetch import PartitionRecords, TopicFetchResponse, topic_fetch_request
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.leader_calls import NEW_TOPIC_WAIT_S
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, LeaderOf, Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.wire.protocol.response_errors import error_for_code
from sparkmirror.wire.protocol.single_fetch import raise_for_code

log = logging.getLogger(__name__)

NO_PROGRESS_TIMEOUT_S = 30.0
"""How long reading may bring nothing although there is more, before that is an error."""
FETCH_TIMEOUT_S = 8.0
SINGLE_LEADER_WAIT_MS = 500
MULTI_LEADER_WAIT_MS = 100
"""How long brokers may wait for new records. One that is asked alone answers with the first of
them; several are waited for together, so the wait is how late news may be."""


class PollResult(NamedTuple):
    """What one round brought, and what went wrong in it for some or all partitions."""

    records: Sequence[ConsumedRecord]
    error: ClusterError | None


def topic_partitions(
    router: Router, topic: str, patience_s: float = CALL_TIMEOUT_S
) -> list[TopicPartition]:
    """The partitions of a topic, asked for if they are not known; or raise why we see none.

    A topic that is not there may have been created a moment ago: brokers hear of it in turn.
    """
    deadline = time.monotonic() + NEW_TOPIC_WAIT_S
    found = router.metadata.topics.get(topic)
    while found is None or not found.partitions:
        found = router.refresh([topic], timeout_s=patience_s).topics.get(topic)
        if found is not None and found.error_code.action is ErrorAction.NOT_AUTHORIZED:
            raise error_for_code(router.client.cluster, "Metadata", found.error_code, topic)
        if (found is None or not found.partitions) and time.monotonic() > deadline:
            raise TopicMissing(router.client.cluster, f"there is no topic {topic}; create it")
    return [TopicPartition(topic, number) for number in sorted(found.partitions)]


def end_offsets(
    router: Router, partitions: Sequence[TopicPartition], patience_s: float = CALL_TIMEOUT_S
) -> dict[int, int]:
    """Where partitions of a topic end for consumers."""
    return _list_offsets(router, partitions, LATEST, patience_s)


def _list_offsets(
    router: Router, partitions: Sequence[TopicPartition], when: int, patience_s: float
) -> dict[int, int]:
    offsets = {}
    found = list_offsets(router, dict.fromkeys(partitions, when), timeout_s=patience_s)
    for partition, (code, listed) in found.items():
        raise_for_code(router, partition, code)
        assert listed is not None
        offsets[partition.partition] = listed.offset
    return offsets


class TopicReader:
    """Follows one topic from its beginning. `ends` is where it ended when this began.

    `patience_s` is how long brokers may keep it from finding that out.
    """

    def __init__(self, router: Router, topic: str, patience_s: float = CALL_TIMEOUT_S) -> None:
        self._router = router
        self._topic = topic
        partitions = topic_partitions(router, topic, patience_s)
        self.beginning_offsets: Mapping[int, int] = _list_offsets(
            router, partitions, EARLIEST, patience_s
        )
        self.end_offsets: Mapping[int, int] = end_offsets(router, partitions, patience_s)
        self._readers = {
            p.partition: CommittedRecordReader(p, self.beginning_offsets[p.partition])
            for p in partitions
        }

    def positions(self) -> dict[int, int]:
        """The offset to be read next, by partition."""
        return {number: view.position for number, view in self._readers.items()}

    def read_to_end(self) -> Iterator[ConsumedRecord]:
        """Read up to the ends, trying again while that may help; raises when it does not."""
        deadline, backoff = time.monotonic() + NO_PROGRESS_TIMEOUT_S, Backoff()
        while not has_reached(self.positions(), self.end_offsets):
            before = self.positions()
            entries, trouble = self.poll()
            yield from entries
            if self.positions() != before:
                deadline = time.monotonic() + NO_PROGRESS_TIMEOUT_S
                backoff.reset()
                continue
            trouble = trouble or self._unavailable("has more records but brings none")
            if not trouble.retriable or time.monotonic() > deadline:
                raise trouble
            time.sleep(backoff.next_delay_s())

    def poll(self) -> PollResult:
        """Ask all leaders once for what follows, waiting a moment if there is nothing."""
        try:
            groups = self._group_by_leader()
        except ClusterError as error:
            return PollResult((), error)
        wait_ms = SINGLE_LEADER_WAIT_MS if len(groups) == 1 else MULTI_LEADER_WAIT_MS
        positions = self.positions()
        questions = {
            address: partial(
                topic_fetch_request, self._topic, {n: positions[n] for n in numbers}, wait_ms
            )
            for address, numbers in groups.items()
        }
        entries: list[ConsumedRecord] = []
        troubles = self._leaderless_errors(groups)
        answers = self._router.connections.request_all(
            questions, time.monotonic() + FETCH_TIMEOUT_S
        )
        for address, answer in answers.items():
            if isinstance(answer, TopicFetchResponse) and answer.error_code is ErrorCode.NONE:
                for piece in answer.partitions:
                    entries += self._consume(piece, troubles)
            else:
                troubles.append(self._response_error(answer))
                self._invalidate_leaders(groups[address])
        return PollResult(entries, troubles[0] if troubles else None)

    def _consume(
        self, piece: PartitionRecords, troubles: list[ClusterError]
    ) -> Iterator[ConsumedRecord]:
        view, end = self._readers[piece.partition], self.end_offsets[piece.partition]
        if piece.error_code is not ErrorCode.NONE:
            try:
                self._handle_error_code(view, piece.error_code)
            except ClusterError as error:
                troubles.append(error)
            return
        for record in view.accept(piece.records):
            content = RecordBytes(record.key, record.value)
            history = record.offset < end
            yield ConsumedRecord(self._topic, piece.partition, record.offset, content, history)

    def _handle_error_code(self, view: CommittedRecordReader, code: ErrorCode) -> None:
        """Do what can be done about a code; raise what it means otherwise."""
        self._invalidate_leaders([view.partition.partition])
        if code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise_for_code(self._router, view.partition, code)
        (start,) = _list_offsets(self._router, [view.partition], EARLIEST, FETCH_TIMEOUT_S).values()
        log.error(
            "%s does not hold offset %d any more: it was truncated or created anew. Reading it"
            " again from its beginning, %d; what it has lost stays known here until a restart",
            view.partition,
            view.position,
            start,
        )
        view.seek(start)

    def _group_by_leader(self) -> dict[Address, list[int]]:
        partitions = [view.partition for view in self._readers.values()]
        if any(self._router.metadata.leader_node(p) is None for p in partitions):
            self._router.refresh([self._topic], timeout_s=FETCH_TIMEOUT_S)
        groups: dict[Address, list[int]] = {}
        for partition in partitions:
            broker = self._router.metadata.leader_node(partition)
            if broker is not None:
                groups.setdefault(broker.address, []).append(partition.partition)
        return groups

    def _invalidate_leaders(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._router.invalidate(LeaderOf(self._readers[number].partition))

    def _leaderless_errors(self, groups: Mapping[Address, Sequence[int]]) -> list[ClusterError]:
        led = {number for numbers in groups.values() for number in numbers}
        if led == self._readers.keys():
            return []
        shown = ", ".join(map(str, sorted(self._readers.keys() - led)))
        return [self._unavailable(f"has no leader for partition {shown}")]

    def _response_error(self, answer: TopicFetchResponse | ClusterError) -> ClusterError:
        if isinstance(answer, ClusterError):
            return answer
        return error_for_code(self._router.client.cluster, "Fetch", answer.error_code, self._topic)

    def _unavailable(self, what: str) -> ClusterError:
        return ClusterUnavailable(
            self._router.client.cluster, f"{self._topic} {what}; check whether all brokers are up"
        )


def has_reached(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Tell whether everything before some ends was read."""
    return all(positions.get(number, 0) >= end for number, end in ends.items())
