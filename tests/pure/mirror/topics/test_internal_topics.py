"""Internal topics have MirrorMaker 2's names and clusters."""

from __future__ import annotations

import pytest

from sparkmirror.mirror.topics.internal_topics import (
    InternalTopic,
    OffsetSyncsLocation,
    checkpoints_topic,
    connect_topics,
    heartbeats_topic,
    offset_syncs_topic,
)
from sparkmirror.mirror.topics.replication_policy import DefaultReplicationPolicy
from sparkmirror.model import SourceAndTarget

FLOW = SourceAndTarget("A", "B")
DOTS = DefaultReplicationPolicy()
UNDERSCORES = DefaultReplicationPolicy(separator="_", internal_separator="_")


def one(name: str, cluster: str) -> InternalTopic:
    return InternalTopic(name=name, cluster=cluster, partitions=1)


def test_offset_syncs_topic() -> None:
    """Upstream's: the name has the other cluster's alias; other locations are refused."""
    at_source = offset_syncs_topic(DOTS, FLOW, OffsetSyncsLocation("source"))
    assert at_source == one("mm2-offset-syncs.B.internal", "A")
    at_target = offset_syncs_topic(DOTS, FLOW, OffsetSyncsLocation("target"))
    assert at_target == one("mm2-offset-syncs.A.internal", "B")
    with pytest.raises(ValueError, match="something"):
        OffsetSyncsLocation("something")


def test_checkpoints_and_heartbeats_are_on_the_target() -> None:
    assert checkpoints_topic(DOTS, FLOW) == one("A.checkpoints.internal", "B")
    assert checkpoints_topic(UNDERSCORES, FLOW) == one("A_checkpoints_internal", "B")
    assert heartbeats_topic(UNDERSCORES, FLOW) == one("heartbeats", "B")


def test_names_of_connect_topics_have_dots_and_the_source_alias() -> None:
    configs, offsets, status = connect_topics(FLOW)
    assert configs == one("mm2-configs.A.internal", "B")
    assert (offsets.name, offsets.partitions) == ("mm2-offsets.A.internal", 25)
    assert (status.name, status.partitions) == ("mm2-status.A.internal", 5)
