"""Reads of several workers: all at once, and a silent worker costs its timeout once."""

from __future__ import annotations

import threading

from sparkmirror.connect.distributed.assignment import MemberShare
from sparkmirror.errors import ConnectRestError, RequestFailed
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.rest.client.member_reads import REPEAT_AFTER_S, MemberReads

SHARES = [MemberShare(worker_id=name, url=f"http://{name}") for name in ("a:1", "b:1")]


class ScriptedReader:
    """Answers with the URL, except for URLs with an error."""

    def __init__(self) -> None:
        self.errors: dict[str, RequestFailed] = {}
        self.asked: list[str] = []

    def read(self, worker_url: str, path: str, /) -> JsonValue:
        self.asked.append(worker_url)
        if worker_url in self.errors:
            raise self.errors[worker_url]
        return worker_url + path


def test_workers_are_asked_at_the_same_time() -> None:
    both = threading.Barrier(2)

    class WaitingReader:
        def read(self, worker_url: str, path: str, /) -> JsonValue:
            both.wait(50)
            return worker_url + path

    found = MemberReads(WaitingReader()).read(SHARES, "/x")
    assert found.answers == {"a:1": "http://a:1/x", "b:1": "http://b:1/x"}
    assert found.absent == {}


def test_a_worker_that_does_not_answer_is_not_asked_again_for_some_seconds() -> None:
    reader, now = ScriptedReader(), [0.0]
    reads = MemberReads(reader, lambda: now[0])
    reader.errors = {"http://b:1": RequestFailed("no connection")}
    for _ in range(3):
        found = reads.read(SHARES, "/x")
        assert (set(found.answers), found.absent) == ({"a:1"}, {"b:1": "no connection"})
    assert reader.asked.count("http://b:1") == 1
    reader.errors.clear()
    now[0] += REPEAT_AFTER_S
    assert set(reads.read(SHARES, "/x").answers) == {"a:1", "b:1"}


def test_a_worker_that_answers_with_an_error_is_asked_again_at_once() -> None:
    reader = ScriptedReader()
    reader.errors = {"http://b:1": ConnectRestError("http://b:1/x", 403, "no")}
    reads = MemberReads(reader)
    assert set(reads.read(SHARES, "/x").absent) == {"b:1"}
    reader.errors.clear()
    assert reads.read(SHARES, "/x").absent == {}
