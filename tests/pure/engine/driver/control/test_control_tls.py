"""A control server that uses TLS with a pre-shared key, and clients that do not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sparkmirror.copy.control.connection import ControlConnectionLost
from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import ProgressReport, ReportAck, Welcome
from sparkmirror.copy.control.tls_psk import HAS_TLS_PSK
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.control import control_listener
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from tests.support.copy.control_client import ControlClient, task_hello

pytestmark = pytest.mark.skipif(
    not HAS_TLS_PSK, reason="this Python has no TLS with pre-shared keys; Python 3.13 has it"
)


@contextmanager
def serving(protocol: ControlProtocol) -> Iterator[ControlEndpoint]:
    """A control server that still serves tasks after the block."""
    server = ControlServer(epoch_s=600.0, first_epoch_s=600.0, protocol=protocol, bind="127.0.0.1")
    server.set_job("", NoopConductor(job_without_partitions(2), hold_tasks=True), range(2))
    server.start()
    try:
        yield server.endpoint
        assert_serves_tasks(server.endpoint)
    finally:
        server.close()
    assert server.failure() is None


def assert_serves_tasks(endpoint: ControlEndpoint) -> None:
    with ControlClient(endpoint) as task:
        task.send(task_hello(0), ProgressReport(progress={}))
        task.receive(Welcome)
        task.receive(ReportAck)


def test_a_task_with_another_secret_is_refused_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving(ControlProtocol.TLS_PSK) as endpoint:
        with pytest.raises(ControlConnectionLost, match="ends the handshake"):
            ControlClient(replace(endpoint, secret=b"another secret"))
        assert_serves_tasks(endpoint)
    assert "does not know the secret" in caplog.text
    assert endpoint.secret.decode() not in caplog.text


def test_a_task_that_speaks_encrypted_frames_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_listener, "HANDSHAKE_TIMEOUT_S", 0.3)
    with (
        serving(ControlProtocol.TLS_PSK) as endpoint,
        pytest.raises(ControlConnectionLost, match="ends the handshake"),
    ):
        ControlClient(replace(endpoint, protocol=ControlProtocol.ENCRYPTED_FRAMES))


def test_a_server_of_encrypted_frames_speaks_no_tls() -> None:
    with (
        serving(ControlProtocol.ENCRYPTED_FRAMES) as endpoint,
        pytest.raises(ControlConnectionLost, match="ends the handshake"),
    ):
        ControlClient(replace(endpoint, protocol=ControlProtocol.TLS_PSK))


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", bytes(64), b"\x16\x03\x01\xff\xff"])
def test_a_client_that_does_not_speak_tls_is_disconnected(sent: bytes) -> None:
    with (
        serving(ControlProtocol.TLS_PSK) as endpoint,
        socket.create_connection(endpoint.address) as client,
    ):
        client.settimeout(50)
        client.sendall(sent)
        try:
            assert client.recv(1) == b"", "and the server sends nothing"
        except ConnectionResetError:  # it did not read everything
            return


def test_half_a_record_delays_no_task() -> None:
    with (
        serving(ControlProtocol.TLS_PSK) as endpoint,
        socket.create_connection(endpoint.address) as client,
    ):
        client.sendall(b"\x16\x03\x01\x00")
        assert_serves_tasks(endpoint)
