"""What a client without the secret can do to a server of encrypted frames: be disconnected."""

from __future__ import annotations

import hmac
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from sparkmirror.copy.control.encryption import (
    ANSWER_BYTES,
    NONCE_BYTES,
    PROOF_BYTES,
    DriverFramesHandshake,
    answer_challenge,
)
from sparkmirror.copy.control.frames import MAX_MESSAGE_BYTES
from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.messages import ProgressReport, ReportAck, TaskDone, Welcome
from sparkmirror.engine.driver.control import control_listener
from sparkmirror.engine.driver.control.authenticated_connection import Handshake
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.engine.driver.control.pending_handshakes import (
    MAX_LINES_PER_PERIOD,
    MAX_PENDING_HANDSHAKES,
    PERIOD_S,
    PendingHandshakes,
    RejectionLog,
)
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from tests.support.copy.control_client import ControlClient, task_hello
from tests.support.waiting import wait_until

PATIENCE_S = 50.0


class AttackedServer:
    """A control server, the tasks it knows, and a connection of an attacker."""

    def __init__(self) -> None:
        self.conductor = NoopConductor(job_without_partitions(2), hold_tasks=True)
        self.server = ControlServer(
            epoch_s=600.0,
            first_epoch_s=600.0,
            protocol=ControlProtocol.ENCRYPTED_FRAMES,
            bind="127.0.0.1",
        )
        self.server.set_job("", self.conductor, ())
        self.endpoint = self.server.endpoint

    @contextmanager
    def client(self) -> Iterator[socket.socket]:
        with socket.create_connection(self.endpoint.address) as sock:
            sock.settimeout(PATIENCE_S)
            yield sock

    def assert_serves_tasks(self) -> None:
        with ControlClient(self.endpoint) as task:
            task.send(task_hello(0), ProgressReport(progress={}))
            task.receive(ReportAck)


@pytest.fixture
def attacked() -> Iterator[AttackedServer]:
    attacked = AttackedServer()
    attacked.server.start()
    yield attacked
    attacked.assert_serves_tasks()
    attacked.server.close()
    assert attacked.server.failure() is None


def receive(sock: socket.socket, size: int) -> bytes:
    return sock.recv(size, socket.MSG_WAITALL)


def is_disconnected(sock: socket.socket) -> bool:
    """Wait for the server to close the connection."""
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True


def test_the_recorded_answer_of_a_task_is_worth_nothing_on_another_connection(
    attacked: AttackedServer,
) -> None:
    with attacked.client() as task, attacked.client() as attacker:
        answer, keys = answer_challenge(attacked.endpoint.secret, receive(task, NONCE_BYTES))
        task.sendall(answer)
        assert receive(task, PROOF_BYTES) == keys.driver_proof
        receive(attacker, NONCE_BYTES)
        attacker.sendall(answer)
        assert is_disconnected(attacker)


def test_the_challenge_sent_back_is_no_answer(attacked: AttackedServer) -> None:
    with attacked.client() as attacker:
        attacker.sendall(receive(attacker, NONCE_BYTES) * 2)
        assert is_disconnected(attacker)


def test_the_server_shows_its_proof_only_to_a_client_that_knows_the_secret(
    attacked: AttackedServer,
) -> None:
    with attacked.client() as attacker:
        receive(attacker, NONCE_BYTES)
        attacker.sendall(bytes(ANSWER_BYTES))
        assert is_disconnected(attacker), "and not a byte of a proof"


def test_a_client_that_speaks_in_the_clear_is_disconnected(attacked: AttackedServer) -> None:
    hello = b'{"type":"hello","task":0,"attempt":0,"host":"h","pid":1,"epoch":0,"retry":0}'
    with attacked.client() as attacker:
        attacker.sendall(len(hello).to_bytes(4, "big") + hello)
        receive(attacker, NONCE_BYTES)
        assert is_disconnected(attacker)
    assert not attacked.conductor.counts


def test_the_first_version_of_the_handshake_is_not_accepted(attacked: AttackedServer) -> None:
    with attacked.client() as attacker:
        nonces = receive(attacker, NONCE_BYTES) + bytes(NONCE_BYTES)
        proof = hmac.digest(
            attacked.endpoint.secret, b"sparkmirror control channel 1" + nonces, "sha256"
        )
        attacker.sendall(nonces[NONCE_BYTES:] + proof)
        assert is_disconnected(attacker)


def test_a_large_length_before_the_proof_reserves_no_memory(attacked: AttackedServer) -> None:
    with attacked.client() as attacker:
        attacker.sendall((MAX_MESSAGE_BYTES).to_bytes(4, "big") + bytes(1 << 16))
        receive(attacker, NONCE_BYTES)
        assert is_disconnected(attacker), "after the 64 bytes of an answer"


def test_a_large_length_after_the_proof_ends_only_that_connection(attacked: AttackedServer) -> None:
    with ControlClient(attacked.endpoint) as other, attacked.client() as peer:
        other.send(task_hello(1))
        other.receive(Welcome)
        answer, _ = answer_challenge(attacked.endpoint.secret, receive(peer, NONCE_BYTES))
        peer.sendall(answer + (MAX_MESSAGE_BYTES + 1).to_bytes(4, "big"))
        receive(peer, PROOF_BYTES)
        assert is_disconnected(peer)
        other.send(ProgressReport(progress={}))
        other.receive(ReportAck)


def test_a_connection_that_is_cut_before_task_done_is_a_lost_task(attacked: AttackedServer) -> None:
    with ControlClient(attacked.endpoint) as task:
        task.send(task_hello(0))
        task.receive(Welcome)
    wait_until(lambda: attacked.conductor.counts["left"] == 1, "the task to leave")
    assert attacked.conductor.counts["done"] == 0
    with ControlClient(attacked.endpoint) as task:
        task.send(task_hello(0, attempt=1), TaskDone())
        wait_until(lambda: attacked.conductor.counts["done"] == 1, "TaskDone")


def test_a_client_that_sends_single_bytes_is_disconnected_at_its_deadline(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(control_listener, "HANDSHAKE_TIMEOUT_S", 0.3)
    attacked = AttackedServer()
    attacked.server.start()
    with attacked.client() as attacker:
        attacker.settimeout(0.05)
        for _ in range(ANSWER_BYTES - 1):
            try:
                attacker.sendall(b"!")
                if not attacker.recv(NONCE_BYTES):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the server waits for ever")
    attacked.server.close()
    assert "no handshake within" in caplog.text


def test_more_silent_clients_than_the_limit_lose_their_connections_and_tasks_do_not(
    attacked: AttackedServer, caplog: pytest.LogCaptureFixture
) -> None:
    with ExitStack() as stack:
        silent = [
            stack.enter_context(attacked.client()) for _ in range(MAX_PENDING_HANDSHAKES + 30)
        ]
        attacked.assert_serves_tasks()
        receive(silent[0], NONCE_BYTES)
        assert is_disconnected(silent[0])
    assert "too many connections wait" in caplog.text


def handshake(deadline: float) -> Handshake:
    ours, theirs = socket.socketpair()
    theirs.close()
    pending = Handshake(ours, DriverFramesHandshake(b"secret"), deadline, lambda *_: None)
    ours.close()
    return pending


def test_the_oldest_handshake_gives_way() -> None:
    pending = PendingHandshakes(limit=2)
    first, second, third = (handshake(deadline) for deadline in (3.0, 2.0, 1.0))
    assert pending.add(first) is None
    assert pending.add(second) is None
    assert pending.add(third) is first
    pending.discard(first)
    pending.discard(first)
    assert list(pending) == [second, third]
    assert pending.overdue(1.5) == [third]


def test_a_flood_of_rejected_connections_is_a_few_lines_and_a_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rejections = RejectionLog()
    start = time.monotonic()
    for number in range(MAX_LINES_PER_PERIOD + 7):
        rejections.write(f"10.0.0.1:{number}", "why", start)
    assert len(caplog.records) == MAX_LINES_PER_PERIOD
    rejections.write("10.0.0.2:1", "why", start + PERIOD_S)
    assert [record.getMessage() for record in caplog.records[MAX_LINES_PER_PERIOD:]] == [
        "Rejected 7 more control connections within a minute",
        "Rejected control connection from 10.0.0.2:1: why",
    ]
