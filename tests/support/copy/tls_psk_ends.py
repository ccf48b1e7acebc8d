"""Two ends of a control connection over TLS with a pre-shared key, in memory."""

from __future__ import annotations

from sparkmirror.copy.control.handshake import ControlHandshake
from sparkmirror.copy.control.tls_psk import TlsCipher, TlsPskHandshake


def feed(handshake: ControlHandshake, stream: bytes) -> tuple[bytes, bytes]:
    """Give a handshake as much of the stream as it wants. Returns its answers and the rest."""
    answers = b""
    while stream and (size := handshake.bytes_wanted):
        answers += handshake.receive(stream[:size])
        stream = stream[size:]
    return answers, stream


def connect_ends(
    task_secret: bytes, driver_secret: bytes | None = None
) -> tuple[TlsCipher, TlsCipher]:
    """Do a handshake. Returns the ciphers of the task and of the driver."""
    task = TlsPskHandshake.of_task(task_secret)
    driver = TlsPskHandshake.of_driver(driver_secret or task_secret)
    assert driver.begin() == b""
    from_driver, _ = feed(driver, task.begin())
    from_task, rest = feed(task, from_driver)
    assert rest == b""
    assert feed(driver, from_task) == (b"", b"")
    return task.cipher(), driver.cipher()
