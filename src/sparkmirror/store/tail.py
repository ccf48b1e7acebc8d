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

from sparkmirror.errors import ClusterError, ClusterUnavailable, TopicMissing
from sparkmirror.mirror.records import RecordBytes
from sparkmirror.model import TopicPartition
from sparkmirror.store.committed import CommittedView
from sparkmirror.store.log import Entry
from sparkmirror.store.pieces import Piece, Pieces, ask
from sparkmirror.wire.backoff import Backoff
from sparkmirror.wire.codes import Action, Code
from sparkmirror.wire.leadercalls import SETTLING_S
from sparkmirror.wire.offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.wire.peek import demand
from sparkmirror.wire.place import Address, refusal
from sparkmirror.wire.routing import CALL_TIMEOUT_S, LeaderOf, Router

log = logging.getLogger(__name__)

STALLED_S = 30.0
"""How long reading may bring nothing although there is more, before that is an error."""
ANSWER_S = 8.0
ALONE_MS = 500
TOGETHER_MS = 100
"""How long brokers may wait for new records. One that is asked alone answers with the first of
them; several are waited for together, so the wait is how late news may be."""


class Polled(NamedTuple):
    """What one round brought, and what went wrong in it for some or all partitions."""

    entries: Sequence[Entry]
    trouble: ClusterError | None


def partitions_of(
    router: Router, topic: str, patience_s: float = CALL_TIMEOUT_S
) -> list[TopicPartition]:
    """The partitions of a topic, asked for if they are not known; or raise why we see none.

    A topic that is not there may have been created a moment ago: brokers hear of it in turn.
    """
    deadline = time.monotonic() + SETTLING_S
    found = router.metadata.topics.get(topic)
    while found is None or not found.partitions:
        found = router.refresh([topic], timeout_s=patience_s).topics.get(topic)
        if found is not None and found.code.action is Action.NOT_AUTHORIZED:
            raise refusal(router.client.cluster, "Metadata", found.code, topic)
        if (found is None or not found.partitions) and time.monotonic() > deadline:
            raise TopicMissing(router.client.cluster, f"there is no topic {topic}; create it")
    return [TopicPartition(topic, number) for number in sorted(found.partitions)]


def ends_of(
    router: Router, partitions: Sequence[TopicPartition], patience_s: float = CALL_TIMEOUT_S
) -> dict[int, int]:
    """Where partitions of a topic end for consumers."""
    return _offsets(router, partitions, LATEST, patience_s)


def _offsets(
    router: Router, partitions: Sequence[TopicPartition], when: int, patience_s: float
) -> dict[int, int]:
    offsets = {}
    found = list_offsets(router, dict.fromkeys(partitions, when), timeout_s=patience_s)
    for partition, (code, listed) in found.items():
        demand(router, partition, code)
        assert listed is not None
        offsets[partition.partition] = listed.offset
    return offsets


class Tail:
    """Follows one topic from its beginning. `ends` is where it ended when this began.

    `patience_s` is how long brokers may keep it from finding that out.
    """

    def __init__(self, router: Router, topic: str, patience_s: float = CALL_TIMEOUT_S) -> None:
        self._router = router
        self._topic = topic
        partitions = partitions_of(router, topic, patience_s)
        self.starts: Mapping[int, int] = _offsets(router, partitions, EARLIEST, patience_s)
        self.ends: Mapping[int, int] = ends_of(router, partitions, patience_s)
        self._views = {p.partition: CommittedView(p, self.starts[p.partition]) for p in partitions}

    def positions(self) -> dict[int, int]:
        """The offset to be read next, by partition."""
        return {number: view.position for number, view in self._views.items()}

    def history(self) -> Iterator[Entry]:
        """Read up to the ends, trying again while that may help; raises when it does not."""
        deadline, backoff = time.monotonic() + STALLED_S, Backoff()
        while not has_read(self.positions(), self.ends):
            before = self.positions()
            entries, trouble = self.poll()
            yield from entries
            if self.positions() != before:
                deadline = time.monotonic() + STALLED_S
                backoff.reset()
                continue
            trouble = trouble or self._unavailable("has more records but brings none")
            if not trouble.retriable or time.monotonic() > deadline:
                raise trouble
            time.sleep(backoff.pause_s())

    def poll(self) -> Polled:
        """Ask all leaders once for what follows, waiting a moment if there is nothing."""
        try:
            groups = self._by_leader()
        except ClusterError as error:
            return Polled((), error)
        wait_ms = ALONE_MS if len(groups) == 1 else TOGETHER_MS
        positions = self.positions()
        questions = {
            address: partial(ask, self._topic, {n: positions[n] for n in numbers}, wait_ms)
            for address, numbers in groups.items()
        }
        entries: list[Entry] = []
        troubles = self._unled(groups)
        answers = self._router.links.gather(questions, time.monotonic() + ANSWER_S)
        for address, answer in answers.items():
            if isinstance(answer, Pieces) and answer.code is Code.NONE:
                for piece in answer.pieces:
                    entries += self._entries(piece, troubles)
            else:
                troubles.append(self._refused(answer))
                self._look_anew(groups[address])
        return Polled(entries, troubles[0] if troubles else None)

    def _entries(self, piece: Piece, troubles: list[ClusterError]) -> Iterator[Entry]:
        view, end = self._views[piece.partition], self.ends[piece.partition]
        if piece.code is not Code.NONE:
            try:
                self._heal(view, piece.code)
            except ClusterError as error:
                troubles.append(error)
            return
        for record in view.take(piece.records):
            content = RecordBytes(record.key, record.value)
            history = record.offset < end
            yield Entry(self._topic, piece.partition, record.offset, content, history)

    def _heal(self, view: CommittedView, code: Code) -> None:
        """Do what can be done about a code; raise what it means otherwise."""
        self._look_anew([view.partition.partition])
        if code is not Code.OFFSET_OUT_OF_RANGE:
            demand(self._router, view.partition, code)
        (start,) = _offsets(self._router, [view.partition], EARLIEST, ANSWER_S).values()
        log.error(
            "%s does not hold offset %d any more: it was truncated or created anew. Reading it"
            " again from its beginning, %d; what it has lost stays known here until a restart",
            view.partition,
            view.position,
            start,
        )
        view.begin_again(start)

    def _by_leader(self) -> dict[Address, list[int]]:
        partitions = [view.partition for view in self._views.values()]
        if any(self._router.metadata.broker_of(p) is None for p in partitions):
            self._router.refresh([self._topic], timeout_s=ANSWER_S)
        groups: dict[Address, list[int]] = {}
        for partition in partitions:
            broker = self._router.metadata.broker_of(partition)
            if broker is not None:
                groups.setdefault(broker.address, []).append(partition.partition)
        return groups

    def _look_anew(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._router.forget(LeaderOf(self._views[number].partition))

    def _unled(self, groups: Mapping[Address, Sequence[int]]) -> list[ClusterError]:
        led = {number for numbers in groups.values() for number in numbers}
        if led == self._views.keys():
            return []
        shown = ", ".join(map(str, sorted(self._views.keys() - led)))
        return [self._unavailable(f"has no leader for partition {shown}")]

    def _refused(self, answer: Pieces | ClusterError) -> ClusterError:
        if isinstance(answer, ClusterError):
            return answer
        return refusal(self._router.client.cluster, "Fetch", answer.code, self._topic)

    def _unavailable(self, what: str) -> ClusterError:
        return ClusterUnavailable(
            self._router.client.cluster, f"{self._topic} {what}; check whether all brokers are up"
        )


def has_read(positions: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    """Tell whether everything before some ends was read."""
    return all(positions.get(number, 0) >= end for number, end in ends.items())
