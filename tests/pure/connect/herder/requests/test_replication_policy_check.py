"""Source and checkpoint connectors of one flow should have one replication policy."""

from __future__ import annotations

import json

import pytest

from sparkmirror.connect.herder.requests.replication_policy_check import policy_difference
from tests.support.tutorials.tutorial import TUTORIALS

MIRROR = "org.apache.kafka.connect.mirror"
SOURCE = {
    "connector.class": f"{MIRROR}.MirrorSourceConnector",
    "source.cluster.alias": "west",
    "replication.policy.class": f" {MIRROR}.IdentityReplicationPolicy",
}
CHECKPOINT = {
    "connector.class": "MirrorCheckpointConnector",
    "source.cluster.alias": "west",
    "target.cluster.alias": "target",
    "replication.policy.class": f"{MIRROR}.IdentityReplicationPolicy",
}


def test_connectors_of_the_mm2_script_are_warned_about() -> None:
    configs = {
        name: json.loads((TUTORIALS / "001" / "mm2" / f"{name}.json").read_text("utf-8"))
        for name in ("mm2-cpc-source-0", "mm2-hbc-source-0", "mm2-msc-source-0")
    }
    text = policy_difference("mm2-msc-source-0", configs["mm2-msc-source-0"], configs)
    assert text is not None
    assert text.startswith(
        f"Connector mm2-msc-source-0 has replication.policy.class {MIRROR}."
        "IdentityReplicationPolicy, and connector mm2-cpc-source-0 of the same flow has"
        f" {MIRROR}.DefaultReplicationPolicy: "
    )


@pytest.mark.parametrize(
    ("changed", "is_difference"),
    [
        ({}, False),
        ({"replication.policy.class": None}, True),
        ({"replication.policy.class": None, "source.cluster.alias": "east"}, False),
        (
            {
                "replication.policy.class": None,
                "connector.class": f"{MIRROR}.MirrorHeartbeatConnector",
            },
            False,
        ),
    ],
)
def test_only_connectors_of_one_flow_are_compared(
    changed: dict[str, str | None], is_difference: bool
) -> None:
    difference = policy_difference("c", {**CHECKPOINT, **changed}, {"s": SOURCE, "c": SOURCE})
    assert (difference is not None) == is_difference
