"""Routes that depend on nothing but the name of the topic."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.errors import TransformError
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.static_route import (
    StaticRoute,
    remote_topic_route,
    static_route,
    without_routing,
)
from sparkmirror.transforms.transformation_chain import TransformationChain
from tests.support.golden import golden_lines

ENVIRONMENT = JavaEnvironment(now_ms=1_790_000_000_000)
PACKAGE = "org.apache.kafka.connect.transforms."
STRIP = {"type": "RegexRouter", "regex": r"A\.(.*)", "replacement": "$1"}
DROP = {"type": "DropHeaders", "headers": "h"}
TOMBSTONES = {"type": f"{PACKAGE}predicates.RecordIsTombstone"}
ORDERS = {"type": f"{PACKAGE}predicates.TopicNameMatches", "pattern": "orders.*"}
RECORDED = [
    case
    for case in golden_lines("transforms/transforms.jsonl")
    if case["layer"] == "A"
    and case["id"].startswith("A-RegexRouter")
    and "result" in case
    and case["id"] not in {"A-RegexRouter-536c37e4", "A-RegexRouter-5c256c02"}
]
"""Without the two patterns that are refused."""


def config(*transforms: dict[str, str], **predicates: dict[str, str]) -> dict[str, str]:
    """The keys of a chain, of transformations given as their keys without a prefix."""
    props = {"transforms": ",".join(f"t{index}" for index in range(len(transforms)))}
    for index, keys in enumerate(transforms):
        props |= {f"transforms.t{index}.{key}": text for key, text in keys.items()}
    props["predicates"] = ",".join(predicates)
    for alias, keys in predicates.items():
        props |= {f"predicates.{alias}.{key}": text for key, text in keys.items()}
    return props


def chain_of(*transforms: dict[str, str], **predicates: dict[str, str]) -> TransformationChain:
    return transformation_chain(config(*transforms, **predicates), ENVIRONMENT)


def route_of(*transforms: dict[str, str], **predicates: dict[str, str]) -> StaticRoute:
    route = static_route(chain_of(*transforms, **predicates))
    assert route is not None
    return route


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: str(case["id"]))
def test_routes_are_those_of_java(case: dict[str, Any]) -> None:
    chain = transformation_chain(case["config"], ENVIRONMENT)
    for record, result in zip(case["records"], case["result"], strict=True):
        if "topic" in result:
            route = static_route(chain)
            assert route is not None
            assert route(record["topic"]) == result["topic"]
        else:
            with pytest.raises(TransformError):
                static_route(chain)


def test_there_are_recorded_routes_and_refusals() -> None:
    results = [one for case in RECORDED for one in case["result"]]
    assert len([one for one in results if "topic" in one]) > 10
    assert [one for one in results if "topic" not in one]


def test_routers_are_applied_in_their_order_and_under_their_predicates() -> None:
    route = route_of(
        STRIP,
        {"type": "RegexRouter", "regex": ".*", "replacement": "eu-$0", "predicate": "o"},
        {"type": "RegexRouter", "regex": ".*", "replacement": "x-$0", "predicate": "o",
         "negate": "true"},
        o=ORDERS,
    )  # fmt: skip
    assert [route(name) for name in ("A.orders", "A.pay", "orders")] == [
        "x-eu-orders",
        "x-pay",
        "x-eu-orders",
    ]


def test_a_chain_that_does_not_route_keeps_every_name() -> None:
    route = route_of(DROP)
    assert route.is_identity
    assert route("A.orders") == "A.orders"


@pytest.mark.parametrize(
    "router",
    [
        {"type": "TimestampRouter"},
        {**STRIP, "predicate": "p"},
    ],
    ids=lambda router: str(router["type"]),
)
def test_a_route_that_depends_on_the_record_is_not_static(router: dict[str, str]) -> None:
    """The remote topic is that of the other routes, and records need all stages."""
    chain = chain_of(STRIP, router, DROP, p=TOMBSTONES)
    assert static_route(chain) is None
    assert remote_topic_route(chain)("A.orders") == "orders"
    assert without_routing(chain) is chain


def test_a_replacement_with_which_every_record_would_fail_is_refused_at_once() -> None:
    with pytest.raises(TransformError, match="No group 2") as refused:
        route_of({**STRIP, "replacement": "$2"})
    assert refused.value.java_class == "java.lang.IndexOutOfBoundsException"


def test_stages_that_route_are_not_left_for_records() -> None:
    rest = without_routing(
        chain_of(STRIP, DROP, {"type": "Filter", "predicate": "p"}, p=TOMBSTONES)
    )
    assert [stage.alias for stage in rest.stages] == ["t1", "t2"]
    assert without_routing(chain_of(STRIP)).stages == ()


@pytest.mark.parametrize(
    "reader",
    [
        {"type": "Filter", "predicate": "o"},
        {"type": f"{PACKAGE}InsertField$Value", "topic.field": "topic"},
    ],
    ids=lambda reader: str(reader["type"]),
)
def test_a_stage_that_reads_the_topic_needs_the_stages_that_route(reader: dict[str, str]) -> None:
    rest = without_routing(chain_of(STRIP, reader, o=ORDERS))
    assert [stage.alias for stage in rest.stages] == ["t0", "t1"]


def test_equal_routes_have_equal_texts_under_any_alias() -> None:
    assert route_of(STRIP).texts == route_of(DROP, STRIP).texts
    assert route_of(STRIP).texts != route_of({**STRIP, "replacement": "b"}).texts
    assert route_of({**STRIP, "predicate": "o"}, o=ORDERS).texts != route_of(STRIP).texts
