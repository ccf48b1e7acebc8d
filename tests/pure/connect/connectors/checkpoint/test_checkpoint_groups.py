"""Groups that cannot be read, and why a group gets no checkpoints."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.groups import CommittedOffsets, GroupListing
from sparkmirror.config.warn_once import unrecorded_warnings
from sparkmirror.connect.connectors.checkpoint import checkpoint_groups
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.checkpoint.checkpoint_groups import CheckpointGroups
from sparkmirror.errors import ClusterError, NotAuthorized, UnsupportedByBroker
from sparkmirror.model import OffsetAndMetadata, TopicPartition

CONFIG = MirrorCheckpointConfig.parse(
    {
        "name": "c",
        "connector.class": "MirrorCheckpointConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "topics": "orders",
        "groups.exclude": "internal.*",
    }
)
HIDDEN = NotAuthorized("A", "OffsetFetch answered NO: audit; grant Describe on the group")


class SourceGroups:
    """The groups of a source in memory: committed offsets or an error by group."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.offsets: dict[str, CommittedOffsets | ClusterError] = {}
        monkeypatch.setattr(checkpoint_groups, "list_consumer_groups", self._list_groups)
        monkeypatch.setattr(checkpoint_groups, "list_consumer_group_offsets", self._list_offsets)
        access = ClusterAccess.from_properties("A", {"bootstrap.servers": "127.0.0.1:1"})
        self.groups = CheckpointGroups(CONFIG, access.new_router(), clock=lambda: 0.0)

    def commit(self, group: str, topic: str) -> None:
        self.offsets[group] = {TopicPartition(topic, 0): OffsetAndMetadata(5, "")}

    def _list_groups(self, router: object, *, timeout_s: float) -> tuple[GroupListing, ...]:
        del router, timeout_s
        return tuple(GroupListing(group_id=group) for group in self.offsets)

    def _list_offsets(
        self, router: object, groups: Iterable[str], *, timeout_s: float
    ) -> dict[str, CommittedOffsets | ClusterError]:
        del router, timeout_s
        return {group: self.offsets[group] for group in groups}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> SourceGroups:
    return SourceGroups(monkeypatch)


def test_an_unreadable_group_is_a_problem_although_others_are_readable(
    source: SourceGroups,
) -> None:
    source.commit("billing", "orders")
    source.offsets["audit"] = HIDDEN
    source.groups.refresh()
    assert list(source.groups.groups or ()) == ["billing"]
    assert source.groups.problem == f"offsets of groups cannot be read: audit: {HIDDEN}"
    source.commit("audit", "orders")
    assert source.groups.refresh(), "it is queried with each refresh"
    assert list(source.groups.groups or ()) == ["audit", "billing"]
    assert source.groups.problem == ""


def test_an_unreadable_group_that_is_not_listed_any_more_is_no_problem(
    source: SourceGroups,
) -> None:
    source.commit("billing", "orders")
    source.offsets["audit"] = HIDDEN
    source.groups.refresh()
    del source.offsets["audit"]
    source.groups.refresh()
    assert source.groups.problem == ""


def test_if_no_group_is_readable_the_refresh_fails_and_the_plan_stays(
    source: SourceGroups,
) -> None:
    source.commit("audit", "orders")
    source.groups.refresh()
    source.offsets = {"audit": HIDDEN, "billing": HIDDEN}
    with pytest.raises(NotAuthorized):
        source.groups.refresh()
    assert list(source.groups.groups or ()) == ["audit"]


def test_the_reason_says_why_a_group_gets_no_checkpoints(source: SourceGroups) -> None:
    reason = source.groups.exclusion_reason
    assert reason("billing") == "the groups of A are not listed yet"
    source.commit("billing", "orders")
    source.commit("internal.x", "orders")
    source.commit("elsewhere", "mails")
    source.offsets |= {"audit": HIDDEN, "idle": {}}
    source.groups.refresh()
    assert reason("internal.x") == "groups and groups.exclude exclude it"
    assert reason("a,b") == "its id contains a comma, so it cannot be assigned to a task"
    assert reason("audit") == str(HIDDEN)
    assert reason("idle") == "it has not committed an offset yet"
    assert reason("elsewhere") == (
        "it has committed offsets only on topics that are not mirrored: mails"
    )
    assert reason("unknown") == (
        "A lists no such group: it has not committed an offset there, or the mirror lacks the"
        " right Describe on it"
    )
    assert reason("billing") == "its first checkpoints follow soon"


def test_a_source_that_lists_no_groups_has_none_and_that_is_said_once(
    source: SourceGroups, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(router: object, *, timeout_s: float) -> tuple[GroupListing, ...]:
        del router, timeout_s
        raise UnsupportedByBroker("A", "the broker does not support ListGroups")

    monkeypatch.setattr(checkpoint_groups, "list_consumer_groups", refuse)
    with unrecorded_warnings():
        assert source.groups.refresh()
        assert not source.groups.refresh()
    assert source.groups.groups == ()
    said = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert said == [
        "A: the broker does not support ListGroups, so no group of A gets checkpoints (A->B)"
    ]
