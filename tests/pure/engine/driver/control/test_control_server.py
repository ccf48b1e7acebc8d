"""The control server: handshakes, acknowledgements, and when an epoch ends."""

from __future__ import annotations

import logging
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from sparkmirror.copy.control.connection import ControlConnectionLost
from sparkmirror.copy.control.encryption import (
    NONCE_BYTES,
    PROOF_BYTES,
    DriverFramesHandshake,
    answer_challenge,
)
from sparkmirror.copy.control.handshake import ControlProtocol, preferred_protocol
from sparkmirror.copy.control.messages import (
    ControlMessage,
    Drain,
    EndEpoch,
    EpochAssignment,
    Hello,
    ProgressReport,
    ReleaseSlot,
    ReportAck,
    RequestEpoch,
    SlotHello,
    StartTask,
    TaskDone,
    TaskEnded,
    Welcome,
)
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.driver.control.authenticated_connection import Handshake
from sparkmirror.engine.driver.control.control_listener import HANDSHAKE_TIMEOUT_S
from sparkmirror.engine.driver.control.control_server import ControlServer
from sparkmirror.engine.driver.slots import epoch
from sparkmirror.engine.noop_conductor import NoopConductor, job_without_partitions
from sparkmirror.errors import DriverLost
from tests.support.copy.control_client import ControlClient, task_hello
from tests.support.waiting import wait_until

PREFERRED = preferred_protocol()
REPORT = ProgressReport(progress={})


@contextmanager
def serving(
    conductor: NoopConductor,
    *,
    slots: int = 2,
    epoch_s: float = 60.0,
    first_epoch_s: float = 60.0,
    protocol: ControlProtocol = PREFERRED,
    keeps_slots: bool = False,
) -> Iterator[ControlServer]:
    """A control server with one job, whose name is empty, and enough cores for some slots."""
    server = ControlServer(
        epoch_s=epoch_s,
        first_epoch_s=first_epoch_s,
        protocol=protocol,
        bind="127.0.0.1",
        keeps_slots=keeps_slots,
    )
    server.set_job("", conductor, range(2))
    server.set_slots(available=slots, tasks=slots)
    server.start()
    try:
        yield server
    finally:
        server.close()
    assert server.failure() is None


@contextmanager
def recording_proxy(endpoint: ControlEndpoint, recorded: bytearray) -> Iterator[ControlEndpoint]:
    """A proxy before a control server that records all bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def forward() -> None:
            client, _ = listener.accept()
            with client, socket.create_connection(endpoint.address) as server:
                others = {client: server, server: client}
                while True:
                    for sock in select.select([client, server], [], [])[0]:
                        chunk = sock.recv(1 << 16)
                        if not chunk:
                            return
                        recorded.extend(chunk)
                        others[sock].sendall(chunk)

        thread = threading.Thread(target=forward)
        thread.start()
        yield replace(endpoint, port=listener.getsockname()[1])
        thread.join(timeout=5)


@pytest.fixture
def conductor() -> NoopConductor:
    return NoopConductor(job_without_partitions(2), hold_tasks=True)


def has_counted(conductor: NoopConductor, key: str, number: int) -> Callable[[], bool]:
    return lambda: conductor.counts[key] >= number


def test_a_task_joins_is_welcomed_and_leaves(conductor: NoopConductor) -> None:
    with serving(conductor) as server:
        with ControlClient(server.endpoint) as task:
            task.send(task_hello(0))
            assert task.receive(Welcome).settings == conductor.job.settings.to_json()
            task.send(TaskDone())
            wait_until(has_counted(conductor, "done", 1), "TaskDone")
        wait_until(has_counted(conductor, "left", 1), "the task to leave")


def test_each_report_is_acknowledged_once_even_if_the_conductor_is_busy() -> None:
    class BusyConductor(NoopConductor):
        def on_task_message(self, hello: Hello, message: ControlMessage) -> None:
            self.counts[message.type] += 1

    conductor = BusyConductor(job_without_partitions(1))
    with serving(conductor) as server, ControlClient(server.endpoint) as task:
        task.send(task_hello(0), REPORT, REPORT, REPORT)
        for _ in range(3):
            task.receive(ReportAck)
        with pytest.raises(AssertionError):
            task.receive(ReportAck, within_s=0.2)


def test_the_last_messages_of_a_task_arrive_although_it_closes_the_connection(
    conductor: NoopConductor,
) -> None:
    with serving(conductor) as server:
        for attempt in range(20):
            with ControlClient(server.endpoint) as task:
                task.send(task_hello(0, attempt))
                task.receive(Welcome)
                task.send(*[REPORT] * 5, TaskDone())
                task.finish()
        wait_until(has_counted(conductor, "left", 20), "all tasks to leave")
        assert conductor.counts["done"] == 20
        assert conductor.counts["report"] == 100


def test_a_client_with_a_wrong_proof_is_disconnected_before_its_first_message(
    conductor: NoopConductor, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        serving(conductor, protocol=ControlProtocol.ENCRYPTED_FRAMES) as server,
        socket.create_connection(server.endpoint.address) as client,
    ):
        client.settimeout(20)
        answer, _ = answer_challenge(b"another secret", client.recv(NONCE_BYTES))
        client.sendall(answer)
        assert client.recv(1) == b""
    assert "does not know the secret" in caplog.text


def test_a_task_with_another_secret_connects_to_nothing(conductor: NoopConductor) -> None:
    with serving(conductor) as server:
        wrong = replace(server.endpoint, secret=b"another secret")
        with pytest.raises(ControlConnectionLost, match="ends the handshake"):
            ControlClient(wrong)
        assert not conductor.counts


def test_a_silent_client_delays_no_other(conductor: NoopConductor) -> None:
    with serving(conductor) as server:
        assert (
            min(seconds_until_ack_beside_a_silent_client(server.endpoint) for _ in range(3))
            < HANDSHAKE_TIMEOUT_S / 2
        )


def seconds_until_ack_beside_a_silent_client(endpoint: ControlEndpoint) -> float:
    """How long a task waits for an answer while another client does not finish its handshake."""
    with socket.create_connection(endpoint.address) as silent, ControlClient(endpoint) as task:
        silent.send(b"abc")
        began = time.monotonic()
        task.send(task_hello(0), REPORT)
        task.receive(ReportAck)
        return time.monotonic() - began


def test_a_client_that_sends_a_malformed_message_is_disconnected_and_others_stay(
    conductor: NoopConductor,
) -> None:
    with (
        serving(conductor, protocol=ControlProtocol.ENCRYPTED_FRAMES) as server,
        ControlClient(server.endpoint) as task,
    ):
        task.send(task_hello(0))
        with socket.create_connection(server.endpoint.address) as client:
            client.settimeout(50)
            answer, keys = answer_challenge(server.endpoint.secret, client.recv(NONCE_BYTES))
            malformed = keys.task_ciphers().outgoing.encrypt(b"malformed")
            client.sendall(answer + len(malformed).to_bytes(4, "big") + malformed)
            assert client.recv(PROOF_BYTES) == keys.driver_proof
            assert client.recv(1) == b""
        task.send(REPORT)
        task.receive(ReportAck)


def test_the_network_sees_no_plain_text(conductor: NoopConductor) -> None:
    """Welcome holds client properties, and so passwords."""
    recorded = bytearray()
    with (
        serving(conductor) as server,
        recording_proxy(server.endpoint, recorded) as endpoint,
        ControlClient(endpoint) as task,
    ):
        task.send(task_hello(0))
        welcome = task.receive(Welcome)
    assert welcome.settings["source"] == {"bootstrap.servers": "127.0.0.1:1"}
    assert len(recorded) > 100
    for hidden in (b"bootstrap", b"welcome", b"hello", server.endpoint.secret):
        assert hidden not in recorded


def test_the_error_names_a_port_that_is_taken(conductor: NoopConductor) -> None:
    with serving(conductor) as server, pytest.raises(DriverLost, match=str(server.endpoint.port)):
        ControlServer(epoch_s=1, protocol=PREFERRED, bind="127.0.0.1", port=server.endpoint.port)


def test_each_request_for_an_epoch_starts_the_next_one(conductor: NoopConductor) -> None:
    with serving(conductor) as server, ControlClient(server.endpoint) as planner:
        for number in (1, 2):
            planner.send(RequestEpoch(finished_epoch=number - 1))
            assert planner.receive(EpochAssignment) == EpochAssignment(number=number, slots=2)
            assert server.epoch == number
        assert not server.is_idle


def test_after_stop_new_epochs_no_epoch_starts(conductor: NoopConductor) -> None:
    with serving(conductor) as server, ControlClient(server.endpoint) as planner:
        planner.send(RequestEpoch(finished_epoch=0))
        planner.receive(EpochAssignment)
        server.stop_new_epochs()
        assert not server.is_idle, "the epoch still runs"
        planner.send(RequestEpoch(finished_epoch=1))
        assert planner.receive(EpochAssignment) == EpochAssignment(number=1, slots=2)
        assert server.is_idle


def test_slots_get_log_levels_with_their_epoch(conductor: NoopConductor) -> None:
    with serving(conductor) as server, ControlClient(server.endpoint) as planner:
        server.set_log_levels({"sparkmirror.copy": 10, "kafka": 30})
        server.set_log_levels({"kafka": 40})
        assert begin_epoch(planner).log_levels == {"sparkmirror.copy": 10, "kafka": 40}


def begin_epoch(planner: ControlClient, finished: int = 0) -> EpochAssignment:
    planner.send(RequestEpoch(finished_epoch=finished))
    return planner.receive(EpochAssignment)


def slot_hello(slot: int, epoch: int = 1, attempt: int = 0) -> SlotHello:
    return SlotHello(slot=slot, attempt=attempt, host="here", pid=1, epoch=epoch)


def test_slots_start_the_tasks_of_a_job_and_a_task_that_ends_is_started_again(
    conductor: NoopConductor,
) -> None:
    with (
        serving(conductor, slots=1) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as slot,
        ControlClient(server.endpoint) as task,
    ):
        begin_epoch(planner)
        slot.send(slot_hello(0))
        first, second = slot.receive(StartTask), slot.receive(StartTask)
        assert [first.task, second.task] == [0, 1]
        task.send(task_hello(0, first.attempt))
        task.receive(Welcome)
        server.restart_tasks("", [0])
        task.receive(Drain)
        slot.send(TaskEnded(job="", task=0, attempt=first.attempt, error=""))
        again = slot.receive(StartTask)
        assert (again.task, again.retry) == (0, 1)
        assert again.attempt > second.attempt


def test_an_outdated_attempt_and_a_task_of_an_unknown_job_are_disconnected(
    conductor: NoopConductor,
) -> None:
    with serving(conductor, slots=1) as server, ControlClient(server.endpoint) as planner:
        begin_epoch(planner)
        with ControlClient(server.endpoint) as slot:
            slot.send(slot_hello(0))
            attempt = slot.receive(StartTask).attempt
            for hello in (task_hello(0, attempt - 1), replace(task_hello(0), job="unknown")):
                with ControlClient(server.endpoint) as task, pytest.raises(ControlConnectionLost):
                    task.send(hello)
                    task.receive(Welcome)
    assert conductor.counts["joined"] == 0


def test_a_removed_job_loses_its_tasks_and_the_others_stay(conductor: NoopConductor) -> None:
    other = NoopConductor(job_without_partitions(1), hold_tasks=True)
    with (
        serving(conductor) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as task,
        ControlClient(server.endpoint) as other_task,
    ):
        begin_epoch(planner)
        server.set_job("other", other, [0])
        task.send(task_hello(0))
        task.receive(Welcome)
        other_task.send(replace(task_hello(0), job="other"))
        other_task.receive(Welcome)
        server.remove_job("other")
        with pytest.raises(ControlConnectionLost):
            other_task.receive(Drain)
        task.send(REPORT)
        task.receive(ReportAck)
    assert (conductor.counts["joined"], other.counts["joined"]) == (1, 1)


def test_more_slots_end_the_epoch_and_fewer_do_not(conductor: NoopConductor) -> None:
    with (
        serving(conductor, slots=1) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as slot,
    ):
        assert begin_epoch(planner).slots == 1
        slot.send(slot_hello(0))
        slot.receive(StartTask)
        server.set_slots(available=4, tasks=1)
        server.set_slots(available=4, tasks=3)
        slot.receive(Drain)
        assert begin_epoch(planner, finished=1).slots == 3
        assert conductor.counts["end_epoch"] == 1


def test_an_epoch_does_not_end_before_its_kept_slots_are_adopted(
    conductor: NoopConductor,
) -> None:
    with (
        serving(conductor, slots=1, keeps_slots=True) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as slot,
    ):
        begin_epoch(planner)
        slot.send(slot_hello(0))
        slot.receive(StartTask)
        server.end_epoch()
        assert slot.receive(EndEpoch).epoch == 1
        begin_epoch(planner, finished=1)
        server.end_epoch()  # the slot is not released
        slot.send(slot_hello(0, epoch=2))
        assert slot.receive(EndEpoch).epoch == 2
        assert conductor.counts["drain_tasks"] == 0


def test_an_outdated_attempt_does_not_keep_the_later_one_from_copying_on(
    conductor: NoopConductor,
) -> None:
    with (
        serving(conductor, slots=2, keeps_slots=True) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as slot,
        ControlClient(server.endpoint) as outdated,
        ControlClient(server.endpoint) as task,
    ):
        begin_epoch(planner)
        with ControlClient(server.endpoint) as lost:
            lost.send(slot_hello(0, attempt=1))
            slot.send(slot_hello(1, attempt=2))
            start = lost.receive(StartTask)
            outdated.send(replace(task_hello(start.task, start.attempt), epoch=1))
            outdated.receive(Welcome)
        starts = [slot.receive(StartTask), slot.receive(StartTask)]
        [again] = [one for one in starts if one.task == start.task]
        task.send(replace(task_hello(again.task, again.attempt), epoch=1))
        task.receive(Welcome)
        server.end_epoch()
        assert task.receive(EndEpoch).epoch == 1
        with pytest.raises(AssertionError, match="no Drain"):
            task.receive(Drain, within_s=0.5)
    assert conductor.counts["drain_tasks"] == 0


def test_the_end_of_an_epoch_that_failed_does_not_end_the_next_one(
    conductor: NoopConductor,
) -> None:
    with (
        serving(conductor, slots=1, keeps_slots=True) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as kept,
        ControlClient(server.endpoint) as slot,
    ):
        begin_epoch(planner)
        kept.send(slot_hello(0))
        kept.receive(StartTask)
        server.end_epoch()
        kept.receive(EndEpoch)
        begin_epoch(planner, finished=1)
        server.end_epoch()  # waits for the slot
        assert begin_epoch(planner, finished=2).number == 3
        slot.send(slot_hello(0, epoch=3))
        kept.receive(ReleaseSlot)
        with pytest.raises(AssertionError, match="no EndEpoch"):
            slot.receive(EndEpoch, within_s=1.5)
        assert server.is_ready


def test_an_epoch_that_ends_later_for_more_slots_is_announced_once(
    conductor: NoopConductor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with (
        serving(conductor, slots=1, keeps_slots=True) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as slot,
    ):
        begin_epoch(planner)
        slot.send(slot_hello(0))
        slot.receive(StartTask)
        server.end_epoch()
        slot.receive(EndEpoch)
        begin_epoch(planner, finished=1)
        for _ in range(3):
            server.set_slots(available=4, tasks=3)
        slot.send(slot_hello(0, epoch=2))
        assert slot.receive(EndEpoch).epoch == 2
    assert caplog.text.count("The next epoch has 3 slots instead of 1") == 1


def test_an_epoch_ends_epoch_s_after_its_first_slot_connected(conductor: NoopConductor) -> None:
    with (
        serving(conductor, epoch_s=0.2) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as slot,
    ):
        begin_epoch(planner)
        time.sleep(0.4)
        assert conductor.counts["end_epoch"] == 0, "no slot has connected yet"
        slot.send(slot_hello(0))
        slot.receive(Drain)
        assert conductor.counts["end_epoch"] == 1


def test_the_first_epoch_is_short_once_all_its_slots_are_connected(
    conductor: NoopConductor,
) -> None:
    with serving(conductor, first_epoch_s=0.2) as server, ControlClient(server.endpoint) as planner:
        for epoch in (1, 2):
            begin_epoch(planner, finished=epoch - 1)
            with ControlClient(server.endpoint) as slot, ControlClient(server.endpoint) as other:
                slot.send(slot_hello(0, epoch))
                time.sleep(0.4)
                assert conductor.counts["end_epoch"] == epoch - 1, "one slot is not connected yet"
                other.send(slot_hello(1, epoch))
                if epoch == 1:
                    other.receive(Drain)
                else:
                    time.sleep(0.4)
                    assert conductor.counts["end_epoch"] == 1, "only the first epoch is short"


def test_a_server_without_a_job_is_ready_when_the_slots_of_its_second_epoch_are_connected(
    conductor: NoopConductor,
) -> None:
    with serving(conductor, slots=1) as server, ControlClient(server.endpoint) as planner:
        server.remove_job("")
        for epoch in (1, 2):
            begin_epoch(planner, finished=epoch - 1)
            assert not server.is_ready
            with ControlClient(server.endpoint) as slot:
                slot.send(slot_hello(0, epoch))
                if epoch == 1:
                    slot.receive(Drain)
                    assert not server.is_ready
                else:
                    wait_until(lambda: server.is_ready, "the server to be ready")
        wait_until(lambda: not server.is_ready, "the server to notice that its slot has gone")


def test_slots_and_tasks_that_connect_after_the_end_of_their_epoch_are_drained(
    conductor: NoopConductor,
) -> None:
    with (
        serving(conductor, epoch_s=0.2) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as slot,
        ControlClient(server.endpoint) as late_slot,
        ControlClient(server.endpoint) as late_task,
    ):
        begin_epoch(planner)
        slot.send(slot_hello(0))
        slot.receive(Drain)
        late_slot.send(slot_hello(1))
        late_slot.receive(Drain)
        late_task.send(task_hello(1))
        late_task.receive(Drain)


def test_a_slot_of_an_earlier_epoch_is_disconnected(conductor: NoopConductor) -> None:
    with (
        serving(conductor) as server,
        ControlClient(server.endpoint) as planner,
        ControlClient(server.endpoint) as zombie,
        ControlClient(server.endpoint) as late,
    ):
        begin_epoch(planner)
        zombie.send(slot_hello(0))
        wait_until(lambda: not server.lacks_slots, "the slot")
        time.sleep(0.1)
        begin_epoch(planner, finished=1)
        late.send(slot_hello(1, epoch=1))
        for slot in (zombie, late):
            with pytest.raises(ControlConnectionLost):
                slot.receive(Drain)


def test_without_a_connected_slot_for_long_spark_lacks_slots(
    conductor: NoopConductor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epoch, "SLOT_TIMEOUT_S", 0.2)
    with serving(conductor) as server, ControlClient(server.endpoint) as planner:
        assert not server.lacks_slots
        begin_epoch(planner)
        wait_until(lambda: server.lacks_slots, "the missing slots")
        with ControlClient(server.endpoint) as slot:
            slot.send(slot_hello(0))
            wait_until(lambda: not server.lacks_slots, "the slot")
        wait_until(lambda: server.lacks_slots, "the missing slots again")


def test_many_tasks_are_served_at_once(conductor: NoopConductor) -> None:
    with serving(conductor) as server:
        with ExitStack() as stack:
            tasks = [stack.enter_context(ControlClient(server.endpoint)) for _ in range(100)]
            for number, task in enumerate(tasks):
                task.send(task_hello(number), REPORT)
            for task in tasks:
                task.receive(ReportAck)
        wait_until(has_counted(conductor, "left", 100), "all tasks to leave")


@pytest.mark.parametrize("protocol", list(ControlProtocol))
def test_the_endpoint_tells_planner_and_tasks_which_protocol_the_server_speaks(
    tmp_path: Path, protocol: ControlProtocol
) -> None:
    endpoint = ControlEndpoint(
        host="h",
        port=1,
        protocol=protocol,
        secret=b"s",
        gateway_port=2,
        gateway_secret="g",
        query_settings={"spark.sql.ansi.enabled": "false"},
    )
    endpoint.write(tmp_path / "endpoint")
    assert ControlEndpoint.read(tmp_path / "endpoint") == endpoint


def test_the_repr_of_an_endpoint_shows_no_secret() -> None:
    endpoint = ControlEndpoint(
        host="h", port=1, protocol=PREFERRED, secret=b"hidden", gateway_secret="hidden"
    )
    assert "hidden" not in repr(endpoint)


def test_a_peer_without_host_and_port_has_a_name_for_the_log() -> None:
    ours, theirs = socket.socketpair()  # Unix sockets: their name is an empty string
    with ours, theirs:
        handshake = Handshake(
            ours, DriverFramesHandshake(b"secret"), time.monotonic(), lambda *_: None
        )
        assert handshake.peer == "a closed connection"
