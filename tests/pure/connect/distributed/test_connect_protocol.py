"""What members of a worker group send each other comes back unchanged, or is refused."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment, MemberShare
from sparkmirror.connect.distributed.connect_protocol import (
    decode_assignment,
    decode_state,
    encode_assignment,
    encode_state,
)
from sparkmirror.connect.distributed.worker_state import STATE_VERSION, WorkerState
from sparkmirror.errors import NewerWorker, RecordError

names = st.text(min_size=1, max_size=8)
task_ids = st.builds(ConnectorTaskId, connector=names, task=st.integers(0, 200))
connector_sets = st.frozensets(names, max_size=5)
task_sets = st.frozensets(task_ids, max_size=20)


@given(names, names, st.integers(-1, 1 << 40), connector_sets, task_sets)
def test_a_state_comes_back_unchanged(
    worker_id: str,
    url: str,
    offset: int,
    connectors: frozenset[str],
    tasks: frozenset[ConnectorTaskId],
) -> None:
    state = WorkerState(
        worker_id=worker_id, url=url, config_offset=offset, connectors=connectors, tasks=tasks
    )
    assert decode_state(encode_state(state)) == state


@given(connector_sets, task_sets, connector_sets, task_sets, st.integers(0, 300_000))
def test_an_assignment_comes_back_unchanged(
    connectors: frozenset[str],
    tasks: frozenset[ConnectorTaskId],
    revoked_connectors: frozenset[str],
    revoked_tasks: frozenset[ConnectorTaskId],
    delay_ms: int,
) -> None:
    assignment = Assignment(
        generation=4,
        member_id="m2",
        leader_id="m1",
        config_offset=17,
        shares={
            "m1": MemberShare(worker_id="w1", url="http://w1/", connectors=connectors),
            "m2": MemberShare(worker_id="w2", url="http://w2/", tasks=tasks),
        },
        task_counts=dict.fromkeys(connectors, 3),
        revoked_connectors=revoked_connectors,
        revoked_tasks=revoked_tasks,
        delay_ms=delay_ms,
    )
    assert decode_assignment(encode_assignment(assignment), "m2") == assignment


def test_a_worker_of_a_version_without_shares_sends_nothing() -> None:
    assert decode_state(b"") is None
    assert decode_assignment(b"", "m1") is None


def test_a_newer_version_is_named_and_refused() -> None:
    newer = zlib.compress(json.dumps({"version": STATE_VERSION + 1, "worker_id": "w9"}).encode())
    with pytest.raises(NewerWorker, match=rf"worker w9 .* version {STATE_VERSION + 1}"):
        decode_state(newer)
    with pytest.raises(NewerWorker):
        decode_assignment(newer, "m1")


@given(st.binary(min_size=1, max_size=200))
def test_bytes_of_another_program_are_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        decode_state(data)
    with pytest.raises(RecordError):
        decode_assignment(data, "m1")


@pytest.mark.parametrize(
    "fields", [[], {}, {"version": "1"}, {"version": 1}, {"version": 1, "tasks": 3}]
)
def test_json_without_the_fields_is_refused(fields: object) -> None:
    data = zlib.compress(json.dumps(fields).encode())
    with pytest.raises(RecordError):
        decode_state(data)
    with pytest.raises(RecordError):
        decode_assignment(data, "m1")
