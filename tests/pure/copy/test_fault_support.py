"""What the tests of faults measure with: pauses of a partition, and a network that is cut."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from sparkmirror.wire.net.address import Address
from tests.support.kafka.broker_proxy import BrokerProxy
from tests.support.kafka.continuous_load import largest_gap

REQUEST = b"\0\0\0\x02\0\x03"


@pytest.mark.parametrize(
    ("times", "since", "until", "gap"),
    [
        ([1.0, 2.0, 3.0], 1.5, 3.0, 1.0),
        ([1.0, 2.0, 7.0, 8.0], 3.0, 8.0, 5.0),
        ([1.0, 6.0, 7.0, 8.0], 6.5, 8.0, 1.0),
        ([1.0, 2.0], 2.0, 9.0, 7.0),
        ([1.0, 9.0], 2.0, 3.0, 8.0),
        ([], 1.0, 3.0, 0.0),
    ],
    ids=["even", "within", "before", "not over yet", "over it", "no record"],
)
def test_a_pause_is_the_longest_time_between_records_that_touches_the_span(
    times: list[float], since: float, until: float, gap: float
) -> None:
    assert largest_gap(times, since, until) == gap


@pytest.fixture
def broker() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        yield listening


def test_a_proxy_that_holds_delivers_what_was_sent_meanwhile_also_after_the_client_has_gone(
    broker: socket.socket,
) -> None:
    with BrokerProxy() as proxy:
        proxy.forward_to(Address("127.0.0.1", broker.getsockname()[1]))
        with socket.create_connection(Address.parse(proxy.address)) as client:
            serving, _ = broker.accept()
            with serving:
                client.sendall(REQUEST)
                assert serving.recv(100) == REQUEST
                proxy.hold()
                client.sendall(REQUEST)
                serving.sendall(b"answer")
                for held in (client, serving):
                    held.settimeout(0.3)
                    with pytest.raises(TimeoutError):
                        held.recv(100)
                client.shutdown(socket.SHUT_WR)
                proxy.release()
                serving.settimeout(20)
                assert serving.recv(100) == REQUEST
                assert serving.recv(100) == b""
