"""Recorded lifecycles of a Connect worker, replayed over HTTP against a herder in memory.

Fake connectors replace the mirror. The requests are sent in order; each repeatable one is repeated
until the recorded answer comes. Status and body are compared. Intended differences are listed here.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from typing import Any

import pytest

from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.mirror.connect_topics.connect_offsets import (
    StoredOffset,
    checkpoint_partition,
    heartbeat_partition,
    source_partition,
)
from sparkmirror.model import TopicPartition
from tests.support.connect.in_memory_herder import (
    WORKER_SETTINGS,
    HerderHarness,
    exactly_once_settings,
    running_herder,
)
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import RestClient, RestResponse, running_rest_server

ANSWER_TIMEOUT_S = 50.0
CONFIGURED = {"org.reflections": "ERROR"}
"""The levels in the recorded worker's log config."""
ADDRESSES_JETTY_REFUSES = ("%2F", "%25", "%5C", "->b", "%7Bx")
"""Jetty rejects these paths or fails on them; here they are ordinary names."""
JAVA_ONLY_TEXTS = ("REDACTED (`StreamReadFeature", "Cannot invoke ")
TIMING_DEPENDENT = {
    "status-name",
    "status-at-once",
    "info-at-once",
    "tasks-at-once",
    "restart-at-once",
    "status-after-delete",
}
"""Recorded during a change: the answer depends on timing."""
OUTSIDE_THE_RECORDING = {
    ("04-supplement", "expand-info-alias"),  # names connectors of another recording
    ("04-supplement", "forward-param-false"),
    ("04-supplement", "status-after-too-many"),  # after a request that only Java workers send
    ("03-lifecycle-identity", "topics-hbc"),
    ("08-exactly-once-worker", "offsets"),
    ("01-empty-worker", "loggers"),  # Java's loggers
    ("01-empty-worker", "loggers-after"),
}
INTENDED_DIFFERENCES = {
    "bad-msc": "an invalid pattern is rejected at once, and not when it is used",
    "unreach": "a connector that cannot reach its source says so in its status",
}


def copied(connector: str, cluster: str, offsets: Mapping[str, int]) -> list[StoredOffset]:
    return [
        StoredOffset(
            connector=connector,
            partition=source_partition(cluster, TopicPartition.parse(partition)),
            offset={"offset": offset},
        )
        for partition, offset in offsets.items()
    ]


COPIED = {
    "03-lifecycle-identity": [
        *copied(
            "mm2-msc", "source", {"orders-0": 9, "orders-1": 9, "orders-2": 9, "payments-0": 4}
        ),
        *(
            StoredOffset(
                connector="mm2-cpc",
                partition=checkpoint_partition("app-1", TopicPartition.parse(partition)),
                offset={"offset": 0},
            )
            for partition in ("orders-0", "orders-1", "payments-0")
        ),
        StoredOffset(
            connector="mm2-hbc",
            partition=heartbeat_partition("source", "target"),
            offset={"offset": 0},
        ),
    ],
    "08-exactly-once-worker": copied(
        "mm2-msc", "source", {"orders-0": 2, "orders-1": 2, "orders-2": 2, "eos-t-0": 10}
    ),
}
"""What Java's tasks had copied: fake tasks copy nothing."""


def differs(exchange: RecordedExchange, answer: RestResponse) -> str:
    if answer.status != exchange.status:
        return f"{exchange.status} but {answer.status}: {answer.content[:300]!r}"
    actual, recorded = plain(body(answer)), plain(exchange.body)
    return "" if actual == recorded else f"{recorded}\n  but {actual}"


def body(answer: RestResponse) -> Any:
    try:
        return json.loads(answer.content or b"null")
    except json.JSONDecodeError:
        return answer.content.decode()


def plain(value: Any) -> Any:
    """Remove what differs from run to run, and the order of Java's hash maps."""
    if isinstance(value, dict):
        return {
            key: value_of(key, member)
            for key, member in value.items()
            if key not in ("kafka_cluster_id", "documentation", "last_modified")
        }
    if isinstance(value, list):
        members = [plain(member) for member in value]
        return sorted(members, key=lambda member: json.dumps(member, sort_keys=True))
    return value


def value_of(key: str, member: Any) -> Any:
    if key == "trace":
        return re.split(r"[:\n]", member)[0] if "Pattern" in member else bool(member)
    return plain(member)


def is_excluded(exchange: RecordedExchange) -> bool:
    return (
        any(part in exchange.path for part in ADDRESSES_JETTY_REFUSES)
        or any(text in (exchange.raw_body or "") for text in JAVA_ONLY_TEXTS)
        or "X-Connect-Authorization" in exchange.request_headers
        or exchange.name in TIMING_DEPENDENT
        or (exchange.file, exchange.name) in OUTSIDE_THE_RECORDING
        or any(name in (exchange.path + (exchange.request or "")) for name in INTENDED_DIFFERENCES)
        or (exchange.name == "create-name" and exchange.status == 500)
        or (exchange.path == "/connectors/mm2-hbc/offsets" and exchange.method == "GET")
        or exchange.response_headers.get("content-type", "").startswith("text/html")
    )


def is_repeatable(exchange: RecordedExchange) -> bool:
    """Return whether repeating the request changes nothing: the replay has no pauses."""
    return (
        exchange.method == "GET"
        or "/restart" in exchange.path
        or (exchange.method == "PUT" and exchange.status == 200)
    )


def replay(client: RestClient, recorded: list[RecordedExchange]) -> list[str]:
    """Send every request; repeat it, if possible, until the recorded answer comes."""
    wrong = []
    for exchange in recorded:
        deadline = time.monotonic() + (ANSWER_TIMEOUT_S if is_repeatable(exchange) else 0)
        while True:
            answer = client.request(
                exchange.method, exchange.path, exchange.request, exchange.request_headers
            )
            difference = differs(exchange, answer)
            if not difference or time.monotonic() >= deadline:
                break
            time.sleep(0.005)
        if difference:
            wrong.append(f"{exchange.seq} {exchange.name} {exchange.path}: {difference}")
    return wrong


def replayed(harness: HerderHarness, file: str) -> list[str]:
    with running_rest_server(harness.herder) as server:
        client = RestClient(server.address)
        try:
            return replay(client, [one for one in recorded_exchanges(file) if not is_excluded(one)])
        finally:
            client.close()


@pytest.mark.parametrize(
    "file",
    ["01-empty-worker", "03-lifecycle-identity", "04-supplement", "08-exactly-once-worker"],
    ids=lambda file: file[:2],
)
def test_a_recorded_lifecycle_gets_the_same_answers(file: str) -> None:
    settings = exactly_once_settings() if "exactly-once" in file else WORKER_SETTINGS
    levels = LogLevels(logging.Manager(logging.RootLogger(logging.INFO)), known=CONFIGURED)
    with running_herder(settings, log_levels=levels, offsets=COPIED.get(file, ())) as harness:
        assert replayed(harness, file) == []
