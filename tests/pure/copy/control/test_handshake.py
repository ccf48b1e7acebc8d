"""The protocol of a control connection: the driver names it, and both ends use no other."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from sparkmirror.copy.control import handshake
from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.encryption import DriverFramesHandshake, TaskFramesHandshake
from sparkmirror.copy.control.handshake import (
    ControlHandshake,
    ControlProtocol,
    ControlProtocolUnsupported,
    driver_handshake,
    preferred_protocol,
    task_handshake,
)
from sparkmirror.copy.control.tls_psk import HAS_TLS_PSK

SECRET = b"the secret of one run"


def test_tls_is_preferred_where_the_python_has_it() -> None:
    assert preferred_protocol(has_tls_psk=True) is ControlProtocol.TLS_PSK
    assert preferred_protocol(has_tls_psk=False) is ControlProtocol.ENCRYPTED_FRAMES
    assert (preferred_protocol() is ControlProtocol.TLS_PSK) == HAS_TLS_PSK


def test_the_named_protocol_is_spoken_even_if_the_python_has_a_better_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshake, "HAS_TLS_PSK", True)
    frames = ControlProtocol.ENCRYPTED_FRAMES
    assert isinstance(task_handshake(frames, SECRET), TaskFramesHandshake)
    assert isinstance(driver_handshake(frames, SECRET), DriverFramesHandshake)


@pytest.mark.parametrize("end", [task_handshake, driver_handshake])
def test_a_python_without_tls_psk_refuses_instead_of_falling_back(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[ControlProtocol, bytes], ControlHandshake]
) -> None:
    monkeypatch.setattr(handshake, "HAS_TLS_PSK", False)
    with pytest.raises(ControlProtocolUnsupported, match="control.protocol=encrypted-frames"):
        end(ControlProtocol.TLS_PSK, SECRET)


def test_a_task_without_tls_psk_says_what_to_do_and_sends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshake, "HAS_TLS_PSK", False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with pytest.raises(ControlConnectionLost, match="control.protocol=encrypted-frames"):
            ControlConnection.connect(
                listener.getsockname(), ControlProtocol.TLS_PSK, SECRET, lambda _: None
            )
        driver, _ = listener.accept()
        with driver:
            assert driver.recv(1) == b""
