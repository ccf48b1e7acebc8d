"""How far records are opened for the transformations of a connector."""

from __future__ import annotations

import pytest

from sparkmirror.transforms.lane_choice import TransformLane, connector_lane

PACKAGE = "org.apache.kafka.connect.transforms."
ROUTER = {"type": "RegexRouter", "regex": "A[.](.*)", "replacement": "$1"}
DROP = {"type": "DropHeaders", "headers": "h"}
FILTER = {"type": "Filter", "predicate": "p"}
MASK = {"type": f"{PACKAGE}MaskField$Value", "fields": "f"}
KEY = {"type": f"{PACKAGE}ValueToKey", "fields": "f"}
HEADER = {"type": f"{PACKAGE}predicates.HasHeaderKey", "name": "h"}
TOPIC = {"type": f"{PACKAGE}predicates.TopicNameMatches", "pattern": "a"}
TOMBSTONE = {"type": f"{PACKAGE}predicates.RecordIsTombstone"}


def props(predicate: dict[str, str], *stages: dict[str, str]) -> dict[str, str]:
    """The keys of a chain. Its predicate is called p."""
    keys = {"transforms": ",".join(f"t{index}" for index in range(len(stages))), "predicates": "p"}
    for index, stage in enumerate(stages):
        keys |= {f"transforms.t{index}.{key}": text for key, text in stage.items()}
    return keys | {f"predicates.p.{key}": text for key, text in predicate.items()}


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        ({}, "unchanged: no transformation"),
        (props(HEADER, ROUTER), "renamed: only the name of the topic counts for t0"),
        (
            props(TOPIC, ROUTER, {**ROUTER, "predicate": "p"}),
            "renamed: only the name of the topic counts for t0, t1",
        ),
        (props(HEADER, ROUTER, DROP), "headers: topic and headers are enough for t0, t1"),
        (props(TOPIC, FILTER), "headers: topic and headers are enough for t0"),
        (props(HEADER, FILTER), "headers: topic and headers are enough for t0"),
        (props(TOMBSTONE, DROP, FILTER), "records: t1 needs values"),
        (props(HEADER, ROUTER, MASK, KEY), "records: t1 needs values, t2 needs keys and values"),
        (
            props(HEADER, DROP, {**ROUTER, "predicate": "p"}),
            "records: t1 sends records of one topic to different topics, in transactions",
        ),
        (
            props(HEADER, {"type": "TimestampRouter"}, MASK, {**ROUTER, "predicate": "p"}),
            "records: t0 and t2 send records of one topic to different topics, in transactions",
        ),
        (
            {**props(HEADER, ROUTER), "sparkmirror.transform.sql": "SELECT * FROM records"},
            "rows: Spark evaluates sparkmirror.transform.sql",
        ),
        (
            {"sparkmirror.transform": "rules:mask"},
            "rows: Spark evaluates sparkmirror.transform",
        ),
    ],
)
def test_the_parts_that_stages_need_choose_the_lane(chain: dict[str, str], text: str) -> None:
    assert str(connector_lane(chain)) == text


def test_a_chain_that_cannot_be_run_has_no_lane() -> None:
    assert connector_lane({"transforms": "x"}) is None


def test_the_names_of_lanes() -> None:
    assert [*TransformLane] == ["unchanged", "renamed", "headers", "records", "rows"]
