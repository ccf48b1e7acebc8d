"""A worker says which values it uses because its cluster is Event Hubs."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.worker.event_hubs_notice import log_event_hubs_values

HUBS = {"bootstrap.servers": "my.servicebus.windows.net:9093"}
SAID = (
    "backup is Azure Event Hubs: the worker uses session.timeout.ms=30000, because the file"
    " does not set these keys"
)


@pytest.mark.parametrize(
    ("worker", "said"),
    [
        (HUBS, [SAID]),
        (HUBS | {"session.timeout.ms": "9000"}, []),
        ({"bootstrap.servers": "kafka:9092"}, []),
    ],
    ids=["event-hubs", "set-by-the-user", "kafka"],
)
def test_values_for_event_hubs_are_said(
    caplog: pytest.LogCaptureFixture, worker: dict[str, str], said: list[str]
) -> None:
    with caplog.at_level(logging.INFO):
        log_event_hubs_values("backup", worker)
    assert caplog.messages == said
