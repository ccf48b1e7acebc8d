"""The order of Java's HashMap, and values as Java prints them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order, string_hash
from sparkmirror.mirror.connect_topics.java_to_string import double_to_string, java_to_string
from tests.support.golden import golden_json, golden_lines

RECORDS = golden_json("vectors/records.json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 97), ("hello", 99162322), ("Aa", 2112), ("BB", 2112), ("😀", 1772899)],
)
def test_string_hash_is_javas(text: str, expected: int) -> None:
    assert string_hash(text) == expected


def test_partitions_of_the_three_connectors_have_the_recorded_order() -> None:
    for kind in ("checkpoint", "heartbeat"):
        for vector in RECORDS[kind]:
            order = vector["connect_partition"]
            assert list(in_hash_map_order(dict.fromkeys(sorted(order)))) == order
    for order, members in RECORDS["wrap_partition_member_order"]:
        shuffled = {key: members[key] for key in sorted(members, reverse=True)}
        assert list(in_hash_map_order(shuffled)) == order


def test_keys_of_one_bucket_keep_their_insertion_order() -> None:
    assert list(in_hash_map_order({"Aa": 1, "BB": 2})) == ["Aa", "BB"]
    assert list(in_hash_map_order({"BB": 2, "Aa": 1})) == ["BB", "Aa"]


@pytest.mark.parametrize(
    "file",
    [
        "connect-mode.connect-topics",
        "dedicated-mode.connect-topics",
        "dedicated-mode.reverse-connect-topics",
        "exactly-once.connect-topics",
        "config-providers.connect-configs",
    ],
)
def test_recorded_task_configs_have_hash_order(file: str) -> None:
    """The HashMaps have 13 to 32 members, so the table has grown once or twice.

    The recording does not say which of two keys in one bucket was inserted first.
    """
    configs = [
        json.loads(line["value_text"])["properties"]
        for line in golden_lines(f"topics/{file}.jsonl")
        if line.get("key_text", "").startswith("task-") and "configs" in line["topic"]
    ]
    assert configs
    for config in configs:
        assert list(in_hash_map_order(config)) == list(config)


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=8), st.integers(), max_size=60))
def test_ordering_twice_changes_nothing(members: dict[str, int]) -> None:
    once = in_hash_map_order(members)
    assert once == members
    assert list(in_hash_map_order(once)) == list(once)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1e23, "1.0E23"),
        (1.25e-5, "1.25E-5"),
        (-1234567890.123, "-1.234567890123E9"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(number: float, text: str) -> None:
    assert double_to_string(number) == text


def test_maps_are_printed_as_java_prints_them() -> None:
    members = {"cluster": None, "partition": 0.5, "topic": True, "x": "y"}
    assert java_to_string(members) == "{cluster=null, partition=0.5, topic=true, x=y}"
    assert java_to_string({}) == "{}"
