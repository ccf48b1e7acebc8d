"""Follows a topic: a fetch waits for new records at each leader, at all of them at the same time.

    leader 1   fetch ............................ no record: the next fetch
    leader 2   fetch ....... records: the next fetch ..............

A broker answers a waiting fetch with the first new record, so a long wait delays no record. At most
one fetch waits at each leader, and a partition is in one fetch at a time: one that has moved to
another leader waits until that leader answers, two seconds at most. Belongs to the thread of
its router. Other requests of that router wait behind a fetch, so other threads need their own one.
"""

from __future__ import annotations

import time
from functools import partial

from sparkmirror.errors import ClusterError
from sparkmirror.store.topic_reader import FETCH_TIMEOUT_S, ConsumedRecord, PollResult, TopicReader
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.broker_connections import OutstandingRequests
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.topics.topic_fetch import TopicFetchResponse, topic_fetch_request

FETCH_WAIT_MS = 2_000
"""How long a broker may wait for new records."""
ERROR_WAIT_MS = 100
"""The same after an error: the next look for leaders comes behind the fetches that wait."""


class TopicFollower:
    """Follows the topic of a reader from the reader's positions. Nothing else polls the reader."""

    def __init__(self, router: Router, reader: TopicReader) -> None:
        self._reader = reader
        self._fetches = OutstandingRequests[TopicFetchResponse](
            router.connections, router.cancel_signal
        )
        self._fetched: dict[Address, list[int]] = {}
        """The partitions of the fetch that waits at each leader."""
        self._wait_ms = 0
        """The first fetches do not wait, so an empty topic is read to its end at once."""

    def poll(self) -> PollResult:
        """Wait until a leader responds; return the records of all responses that are there.

        Returns without records if no leader has a new one within `FETCH_WAIT_MS`, and sooner after
        an error. Raises CallCancelled as soon as the router is cancelled.
        """
        records: list[ConsumedRecord] = []
        errors: list[ClusterError] = []
        self._send_fetches(errors)
        timeout_s = ERROR_WAIT_MS / 1000 if errors else None
        for address, response in self._fetches.take(timeout_s).items():
            records += self._reader.consume(self._fetched.pop(address), response, errors)
        self._wait_ms = ERROR_WAIT_MS if errors else FETCH_WAIT_MS
        return PollResult(records, errors[0] if errors else None)

    def _send_fetches(self, errors: list[ClusterError]) -> None:
        """Send a fetch to each leader that has none, for the partitions that are in none."""
        positions = self._reader.positions()
        for numbers in self._fetched.values():
            for number in numbers:
                positions.pop(number, None)
        for address, numbers in self._reader.group_by_leader(positions, errors).items():
            if address in self._fetched:
                continue  # a partition has moved here: it is in the next fetch
            offsets = {number: positions[number] for number in numbers}
            request = partial(topic_fetch_request, self._reader.topic, offsets, self._wait_ms)
            self._fetched[address] = numbers
            self._fetches.send(address, request, time.monotonic() + FETCH_TIMEOUT_S)
