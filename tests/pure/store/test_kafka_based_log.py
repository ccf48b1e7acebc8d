"""A log on a topic with several leaders: waiting fetches delay neither own records nor a stop."""

from __future__ import annotations

import logging
import time

import pytest

from sparkmirror.mirror.offsets.records import RecordBytes
from sparkmirror.store import topic_follower
from sparkmirror.store.kafka_based_log import KafkaBasedLog
from sparkmirror.store.topic_reader import ConsumedRecord
from tests.support.kafka.log_brokers import TOPIC, running_log_brokers
from tests.support.waiting import wait_until

FETCH_WAIT_MS = 7_000
PROMPT_S = 4.0
"""Less than a broker waits for new records before it answers, on a busy computer too."""


@pytest.mark.parametrize("brokers", [1, 3])
def test_own_records_are_read_back_and_a_stop_is_prompt_while_fetches_wait(
    brokers: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(topic_follower, "FETCH_WAIT_MS", FETCH_WAIT_MS)
    consumed: list[ConsumedRecord] = []
    with running_log_brokers(brokers, 3) as cluster:
        log = KafkaBasedLog(TOPIC, cluster.router)
        log.start(consumed.append)
        try:
            wait_until(
                lambda: cluster.fetch_waits_ms.count(FETCH_WAIT_MS) >= brokers, "waiting fetches"
            )
            read_back_s = []
            for number in range(9):
                record = RecordBytes(b"key %d" % number, b"value %d" % number)
                began = time.monotonic()
                log.append([record])
                log.read_to_end()
                read_back_s.append(time.monotonic() - began)
                assert consumed[-1].record == record
            assert sorted(read_back_s)[4] < PROMPT_S, read_back_s
        finally:
            began = time.monotonic()
            log.stop()
        assert time.monotonic() - began < PROMPT_S
        assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []
