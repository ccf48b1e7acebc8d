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


ROUTE = {
    "transforms": "r",
    "transforms.r.type": "RegexRouter",
    "transforms.r.regex": "a",
    "transforms.r.replacement": "b",
}
SAME_ROUTE = {
    "transforms": "d,q",
    "transforms.d.type": "DropHeaders",
    "transforms.d.headers": "h",
    **{key.replace(".r.", ".q."): text for key, text in ROUTE.items() if "." in key},
}


@pytest.mark.parametrize(
    ("source", "checkpoint", "is_difference"),
    [
        (ROUTE, {}, True),
        ({}, ROUTE, True),
        (ROUTE, SAME_ROUTE, False),
        (ROUTE, {**ROUTE, "transforms.r.replacement": "c"}, True),
        ({"transforms": "x"}, {}, False),
    ],
)
def test_connectors_of_one_flow_should_have_one_route(
    source: dict[str, str], checkpoint: dict[str, str], is_difference: bool
) -> None:
    text = policy_difference("c", CHECKPOINT | checkpoint, {"s": SOURCE | source})
    assert (text is not None) == is_difference
    assert text is None or "Set the same RegexRouters in transforms of both." in text
