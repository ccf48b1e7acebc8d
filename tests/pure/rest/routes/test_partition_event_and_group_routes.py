"""The routes beyond Connect's API: partitions and events of a mirror."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sparkmirror.connect.herder.mirror_monitor_api import MirrorEvent, MirrorPartitionStatus
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from tests.support.rest.listed_monitor import LEASED_PARTITION, ListedMonitor
from tests.support.rest.rest_client import RestClient
from tests.support.rest.scripted_herder import ScriptedHerder

UNKNOWN = MirrorPartitionStatus(
    topic="orders",
    partition=1,
    remote_topic="A.orders",
    task=1,
    state="paused",
    position=5,
    end=None,
    lag=None,
    records=5,
    bytes=50,
    reason="",
)


@pytest.fixture
def monitor() -> ListedMonitor:
    return ListedMonitor()


@pytest.fixture
def scripted() -> ScriptedHerder:
    herder = ScriptedHerder()
    herder.set_response(200, {})
    return herder


@pytest.fixture
def rest(scripted: ScriptedHerder, monitor: ListedMonitor) -> Iterator[RestClient]:
    listeners = [RestListener.parse("http://127.0.0.1:0")]
    server = RestServer(scripted, listeners, RestOptions(access_log=False), monitor)
    server.start()
    client = RestClient(server.address)
    yield client
    client.close()
    server.stop(1.0)


@pytest.mark.parametrize(
    ("listed", "lag"),
    [
        ([LEASED_PARTITION, replace(LEASED_PARTITION, partition=2)], 4),
        ([LEASED_PARTITION, UNKNOWN], None),
        ([], None),
    ],
)
def test_lag_of_a_connector_is_null_unless_it_is_known_for_every_partition(
    rest: RestClient, monitor: ListedMonitor, listed: list[MirrorPartitionStatus], lag: int | None
) -> None:
    monitor.listed_partitions = listed
    assert rest.request("GET", "/connectors/mirror/partitions").json["lag"] == lag


def test_unknown_offsets_are_null(rest: RestClient, monitor: ListedMonitor) -> None:
    monitor.listed_partitions = [UNKNOWN]
    (found,) = rest.request("GET", "/connectors/mirror/partitions").json["partitions"]
    assert {name: found[name] for name in ("state", "position", "end", "lag")} == {
        "state": "paused",
        "position": 5,
        "end": None,
        "lag": None,
    }


def test_events_have_their_time_and_a_lost_range_or_null(
    rest: RestClient, monitor: ListedMonitor
) -> None:
    monitor.listed_events = [
        MirrorEvent(
            at_ms=1_700_000_000_250,
            kind="retention",
            topic="orders",
            partition=0,
            text="lost",
            lost_from=3,
            lost_to=7,
        ),
        MirrorEvent(
            at_ms=1_700_000_001_000, kind="takeover", topic="orders", partition=1, text="goes on"
        ),
    ]
    assert rest.request("GET", "/connectors/mirror/events").json == {
        "name": "mirror",
        "events": [
            {
                "time": "2023-11-14T22:13:20.250Z",
                "kind": "retention",
                "topic": "orders",
                "partition": 0,
                "text": "lost",
                "lost_from": 3,
                "lost_to": 7,
            },
            {
                "time": "2023-11-14T22:13:21.000Z",
                "kind": "takeover",
                "topic": "orders",
                "partition": 1,
                "text": "goes on",
                "lost_from": None,
                "lost_to": None,
            },
        ],
    }


@pytest.mark.parametrize("view", ["partitions", "events", "groups"])
def test_unknown_connector_is_404_in_the_form_of_connect(
    rest: RestClient, scripted: ScriptedHerder, view: str
) -> None:
    scripted.set_response(404, {"error_code": 404, "message": "Connector mirror not found"})
    found = rest.request("GET", f"/connectors/mirror/{view}")
    assert (found.status, found.message) == (404, "Connector mirror not found")


def test_a_group_without_offsets_has_the_reason_if_it_was_asked_for(rest: RestClient) -> None:
    found = rest.request("GET", "/connectors/mirror/groups?group=billing")
    assert found.json == {"name": "mirror", "groups": [], "reason": "billing is excluded"}
    assert rest.request("GET", "/connectors/mirror/groups").json == {"name": "mirror", "groups": []}
