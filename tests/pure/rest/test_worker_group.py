"""Two REST servers of one group: either one answers any request."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from sparkmirror.config.secrets.password import Password
from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.connect.herder.herder import PutConnectorResult, RawConfig
from sparkmirror.connect.herder.mirror_monitor_api import MirrorEvent
from sparkmirror.errors import NotLeader
from sparkmirror.mirror.connect_topics.connect_configs import SessionKey, TargetState
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.client.inter_worker_requests import InterWorkerRequests
from sparkmirror.rest.client.rest_client import RestClient as WorkerRestClient
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.rest.worker_group_access import WorkerGroupAccess
from tests.support.reserved_port import reserved_port
from tests.support.rest.listed_monitor import LEASED_PARTITION, ListedMonitor
from tests.support.rest.rest_client import RestClient, RestResponse
from tests.support.rest.scripted_herder import ScriptedHerder
from tests.support.rest.worker_group import (
    ScriptedInternalHerder,
    session_keys,
    two_worker_assignment,
)

KEY = SessionKey(key=base64.b64encode(b"k" * 32).decode(), algorithm="HmacSHA256", created_ms=0)
USERS = BasicAuthUsers({"ada": Password("lovelace")})
ADA = {"Authorization": "Basic " + base64.b64encode(b"ada:lovelace").decode()}
CREATED = {"name": "c", "config": {"a": "b"}, "tasks": [], "type": "source"}
REPORT = GroupPartitionReport(
    group="g",
    partition=TopicPartition("orders", 0),
    remote=None,
    upstream=None,
    downstream=None,
    checkpoint="",
)


class FollowingHerder(ScriptedHerder):
    """A herder that is not the leader: every change belongs to the leader."""

    def __init__(self) -> None:
        super().__init__()
        self.leader_url = ""

    def create_connector(
        self, name: str, config: RawConfig, initial_state: TargetState | None
    ) -> PutConnectorResult:
        raise NotLeader(self.leader_url)

    def delete_connector(self, name: str) -> None:
        raise NotLeader(self.leader_url)


@dataclass
class Member:
    """One worker of the group."""

    herder: ScriptedHerder
    internal: ScriptedInternalHerder
    monitor: ListedMonitor
    server: RestServer

    def request(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> RestResponse:
        client = RestClient(self.server.address)
        try:
            return client.request(
                method, path, body, {"Content-Type": "application/json", **(headers or {})}
            )
        finally:
            client.close()


@contextmanager
def running_member(
    herder: ScriptedHerder,
    users: BasicAuthUsers | None = None,
    flow: SourceAndTarget | None = None,
) -> Iterator[Member]:
    internal, monitor = ScriptedInternalHerder(session_keys(KEY)), ListedMonitor()
    requests = InterWorkerRequests(WorkerRestClient(), internal.keys, flow)
    options = RestOptions(
        users=users, groups={flow: WorkerGroupAccess(internal, requests)}, access_log=False
    )
    listeners = [RestListener.parse("http://127.0.0.1:0")]
    server = RestServer(herder, listeners, options, monitor)
    server.start()
    try:
        yield Member(herder, internal, monitor, server)
    finally:
        server.stop(1.0)


@contextmanager
def running_group(
    users: BasicAuthUsers | None = None, flow: SourceAndTarget | None = None
) -> Iterator[tuple[Member, Member]]:
    """A leader, and a follower that knows its URL. Task 0 runs on the leader, 1 on the other."""
    following = FollowingHerder()
    with (
        running_member(ScriptedHerder(), users, flow) as leader,
        running_member(following, users, flow) as follower,
    ):
        following.leader_url = leader.server.address
        urls = {"leader:1": leader.server.address, "follower:1": follower.server.address}
        tasks = {
            "leader:1": [ConnectorTaskId(connector="c", task=0)],
            "follower:1": [ConnectorTaskId(connector="c", task=1)],
        }
        leader.internal.current = two_worker_assignment("leader:1", urls, tasks)
        follower.internal.current = two_worker_assignment("follower:1", urls, tasks)
        yield leader, follower


@pytest.fixture
def group() -> Iterator[tuple[Member, Member]]:
    with running_group() as members:
        for member in members:
            member.herder.set_response(200, {})
        yield members


def test_a_follower_lets_the_leader_create_a_connector_and_returns_its_own_location(
    group: tuple[Member, Member],
) -> None:
    leader, follower = group
    leader.herder.set_response(201, CREATED)
    answer = follower.request("POST", "/connectors", '{"name": "c", "config": {"a": "b"}}')
    assert (answer.status, answer.json) == (201, CREATED)
    assert answer.headers["location"] == f"{follower.server.address}/connectors/c"
    assert leader.herder.calls == [("create", "c", {"a": "b", "name": "c"}, None)]


def test_an_error_of_the_leader_is_passed_on(group: tuple[Member, Member]) -> None:
    leader, follower = group
    leader.herder.set_response(404, {"error_code": 404, "message": "Connector nope not found"})
    answer = follower.request("DELETE", "/connectors/nope")
    assert (answer.status, answer.message) == (404, "Connector nope not found")
    assert answer.headers["content-type"] == "application/json"


def test_two_workers_that_take_each_other_for_the_leader_end_with_a_conflict() -> None:
    first, second = FollowingHerder(), FollowingHerder()
    with running_member(first) as one, running_member(second) as other:
        first.leader_url, second.leader_url = other.server.address, one.server.address
        answer = one.request("DELETE", "/connectors/c")
    assert (answer.status, answer.message) == (
        409,
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    )


def test_credentials_are_carried_to_the_leader() -> None:
    with running_group(USERS) as (leader, follower):
        leader.herder.set_response(204, None)
        assert follower.request("DELETE", "/connectors/c").status == 401
        assert follower.request("DELETE", "/connectors/c", headers=ADA).status == 204
        assert leader.herder.calls == [("delete", "c")]


def test_either_worker_shows_the_partitions_of_both(group: tuple[Member, Member]) -> None:
    leader, follower = group
    leader.monitor.listed_partitions = [LEASED_PARTITION]
    follower.monitor.listed_partitions = [replace(LEASED_PARTITION, partition=1, task=1, lag=3)]
    for member in group:
        found = member.request("GET", "/connectors/c/partitions").json
        assert [(one["partition"], one["task"]) for one in found["partitions"]] == [(0, 0), (1, 1)]
        assert (found["records"], found["lag"]) == (14, 5)
        assert "unreachable_workers" not in found


def test_a_partition_that_two_workers_know_is_shown_as_its_owner_sees_it(
    group: tuple[Member, Member],
) -> None:
    leader, follower = group
    leader.monitor.listed_partitions = [replace(LEASED_PARTITION, position=9)]
    follower.monitor.listed_partitions = [replace(LEASED_PARTITION, state="held", position=5)]
    for member in group:
        (found,) = member.request("GET", "/connectors/c/partitions").json["partitions"]
        assert (found["state"], found["position"]) == ("leased", 9)


def test_a_worker_that_does_not_answer_is_named_and_the_lag_is_unknown(
    group: tuple[Member, Member],
) -> None:
    leader, follower = group
    follower.monitor.listed_partitions = [LEASED_PARTITION]
    with reserved_port() as port:
        urls = {"leader:1": f"http://127.0.0.1:{port}", "follower:1": follower.server.address}
        follower.internal.current = two_worker_assignment("follower:1", urls)
        found = follower.request("GET", "/connectors/c/partitions").json
    assert len(found["partitions"]) == 1
    assert found["lag"] is None
    (reason,) = found["unreachable_workers"].values()
    assert reason.startswith(f"no connection to http://127.0.0.1:{port}: ")
    assert leader.herder.calls == []


def test_events_of_all_workers_are_in_order(group: tuple[Member, Member]) -> None:
    for number, member in enumerate(group):
        member.monitor.listed_events = [
            MirrorEvent(at_ms=2000 - number, kind="k", topic="t", partition=0, text=str(number))
        ]
    found = group[0].request("GET", "/connectors/c/events").json["events"]
    assert [event["text"] for event in found] == ["1", "0"]


def test_groups_of_all_workers_are_shown_and_the_reason_of_the_one_that_knows_it(
    group: tuple[Member, Member],
) -> None:
    leader, follower = group
    leader.monitor.listed_groups, follower.monitor.exclusion = [REPORT], ""
    found = follower.request("GET", "/connectors/c/groups").json
    assert [one["group"] for one in found["groups"]] == ["g"]
    found = follower.request("GET", "/connectors/c/groups?group=a%20b").json
    assert (found["groups"], found["reason"]) == ([], "a b is excluded")


def test_reads_between_workers_need_no_password() -> None:
    with running_group(USERS) as (leader, follower):
        for member in (leader, follower):
            member.herder.set_response(200, {})
            member.monitor.listed_partitions = [LEASED_PARTITION]
        found = follower.request("GET", "/connectors/c/partitions", headers=ADA).json
        assert "unreachable_workers" not in found
        unsigned = follower.request("GET", "/worker/connectors/c/partitions")
        assert (unsigned.status, unsigned.message) == (
            400,
            "Internal request missing required signature",
        )


def test_in_dedicated_mode_nodes_ask_each_other_for_the_connector_of_the_flow() -> None:
    flow = SourceAndTarget("A", "B")
    with running_group(flow=flow) as (leader, follower):
        for member in (leader, follower):
            member.herder.set_response(
                200, {"name": "A->B.c", "config": {}, "tasks": [], "type": "source"}
            )
        leader.monitor.listed_partitions = [LEASED_PARTITION]
        found = follower.request("GET", "/connectors/c/partitions").json
    assert found["name"] == "A->B.c"
    assert len(found["partitions"]) == 1
