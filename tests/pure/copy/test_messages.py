"""The control channel's messages and links."""

from __future__ import annotations

import socket
import threading

import pytest

from sparkmirror.copy.job import Job, OnLoss, Start, StartAt
from sparkmirror.copy.link import Link, LinkLost, admit
from sparkmirror.copy.messages import (
    Beat,
    Done,
    Drain,
    Ended,
    Grant,
    Hello,
    How,
    Message,
    MessageError,
    Rate,
    Report,
    Revoke,
    Standing,
    Welcome,
    decode,
    encode,
)
from sparkmirror.copy.seal import Seals
from sparkmirror.copy.settings import Settings, target_from_json, target_to_json
from sparkmirror.copy.snapshot import Event, PartitionView, Snapshot
from sparkmirror.model import TopicPartition
from sparkmirror.wire.target import WITHOUT_ZSTD, Target
from tests.pure.copy.test_partition import lease

SEALS = Seals.of_task(b"secret", b"halves")
MESSAGES: list[Message] = [
    Hello(task=1, attempt=2, host="h", pid=3),
    Report(
        standings={"t-0": Standing(position=1, expected=2, records=5, end=3, held="why")},
        runs=[("t-0", 1, 2, 3)],
        lanes={"t": {"plain": 4}},
        bytes={"t-0": 6},
    ),
    Ended(
        partition="t-0", how=How.FENCED, why="w", position=1, expected=2, records=5, is_clean=False
    ),
    Done(),
    Welcome(settings=Settings(source={"a": "b"}).to_json()),
    Grant(leases=[lease()], targets={"primary.orders": target_to_json(Target())}),
    Revoke(partitions=["t-0"]),
    Beat(),
    Rate(bytes_per_s=9),
    Drain(),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_a_message_reads_back_as_it_was_written(message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"type":"nonsense"}', b'{"type":"hello"}'])
def test_what_is_no_message_is_refused_with_advice(data: bytes) -> None:
    with pytest.raises(MessageError, match="same version"):
        decode(data)


def test_settings_job_target_and_snapshot_travel_as_json() -> None:
    settings = Settings(source={"bootstrap.servers": "a:1"}, rack="r1", bytes_per_s=5)
    assert Settings.from_json(settings.to_json()) == settings
    target = Target(max_message_bytes=5, log_append_time=True, codecs=WITHOUT_ZSTD)
    assert target_from_json(target_to_json(target)) == target
    job = Job(
        connector="c",
        group_id="g",
        settings=settings,
        offsets_topic="o",
        remote_topics={"t": "s.t"},
        tasks=((TopicPartition("t", 0),), (TopicPartition("t", 1),)),
        start=Start(at=StartAt.OFFSETS, offsets={"t-0": 4}),
        on_loss=OnLoss.SKIP,
    )
    assert Job.from_json(job.to_json()) == job
    assert job.remote(TopicPartition("t", 1)) == ("s.t", 1)
    snapshot = Snapshot(
        partitions={"t-0": PartitionView(remote="s.t", task=0, state="leased", end=9, position=4)},
        events=(Event(at_ms=1, kind="retention", partition="t-0", text="x"),),
    )
    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    assert snapshot.partitions["t-0"].lag == 5


def test_client_properties_stay_out_of_reprs() -> None:
    assert "hunter2" not in repr(Settings(source={"sasl.jaas.config": "hunter2"}))


def test_a_link_carries_messages_whole_however_they_are_cut() -> None:
    ours, theirs = socket.socketpair()
    heard: list[Message] = []
    link = Link(ours, heard.append, Seals.of_driver(b"secret", b"halves"))
    seal = Seals.of_task(b"secret", b"halves").outgoing
    payload = b"".join(
        len(data).to_bytes(4, "big") + data for data in (seal.close(encode(m)) for m in MESSAGES)
    )
    for at in range(0, len(payload), 7):
        theirs.sendall(payload[at : at + 7])
        link.on_readable()
    assert heard == MESSAGES
    link.close()
    theirs.close()


def test_a_lost_link_says_so_once_and_stays_closed() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours, lambda _: None, SEALS)
    theirs.close()
    with pytest.raises(LinkLost, match="closed by the other end"):
        link.on_readable()
    with pytest.raises(LinkLost):
        link.send(Beat())


def test_an_absurd_length_ends_the_link() -> None:
    ours, theirs = socket.socketpair()
    link = Link(ours, lambda _: None, SEALS)
    theirs.sendall(b"\xff\xff\xff\xff")
    with pytest.raises(LinkLost, match="announced"):
        link.on_readable()
    theirs.close()


@pytest.mark.parametrize("shown", [b"right", b"wrong"])
def test_a_newcomer_must_know_the_secret(shown: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        links: list[Link] = []
        caller = threading.Thread(
            target=lambda: links.append(Link.connect(server.getsockname(), shown, lambda _: None))
        )
        caller.start()
        sock, _ = server.accept()
        with sock:
            sock.settimeout(50)
            if shown == b"right":
                admit(sock, b"right")
            else:
                with pytest.raises(LinkLost, match="secret"):
                    admit(sock, b"right")
        caller.join()
        links[0].close()
