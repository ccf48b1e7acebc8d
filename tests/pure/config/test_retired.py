"""Old files keep their meaning, and their owners are told once what to write instead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.retired import DROPPED, POINTLESS, RENAMED, modernise
from sparkmirror.config.tables.connectors import ALL_CONNECTOR_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED

OLD = [*RENAMED, *DROPPED, "rest.port", "rest.host.name"]


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_renamed_key_is_read_as_its_successor(old: str, new: str) -> None:
    modern = modernise({old: "a", "other": "b"})
    assert modern.props == {new: "a", "other": "b"}
    (notice,) = modern.notices
    assert notice.kind is NoticeKind.RETIRED_KEY
    assert notice.key == old
    assert f"read as {new}" in notice.message


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_the_successor_wins_if_both_are_set(old: str, new: str) -> None:
    modern = modernise({old: "a", new: "b"})
    assert modern.props == {new: "b"}
    (notice,) = modern.notices
    assert "ignored" in notice.message


def test_keys_of_a_flow_are_renamed_under_their_prefix() -> None:
    modern = modernise({"A->B.topics.blacklist": "x", "C.topics.blacklist": "y"}, ("", "A->B."))
    assert modern.props == {"A->B.topics.exclude": "x", "C.topics.blacklist": "y"}
    assert [notice.key for notice in modern.notices] == ["A->B.topics.blacklist"]


@pytest.mark.parametrize(
    ("given_props", "listeners"),
    [
        ({"rest.port": "28082"}, "http://:28082"),
        ({"rest.host.name": "here"}, "http://here:8083"),
        ({"rest.port": "1", "rest.host.name": "here"}, "http://here:1"),
        ({"rest.port": "1", "listeners": "https://:2"}, "https://:2"),
    ],
    ids=["port", "host", "both", "listeners-win"],
)
def test_host_and_port_become_a_listener(given_props: dict[str, str], listeners: str) -> None:
    modern = modernise(given_props)
    assert modern.props == {"listeners": listeners}
    assert len(modern.notices) == len(given_props.keys() - {"listeners"})


@pytest.mark.parametrize("name", DROPPED)
def test_a_key_without_meaning_goes_with_all_that_belongs_to_it(name: str) -> None:
    modern = modernise({name: "x", f"{name}.schemas.enable": "false", "group.id": "g"})
    assert modern.props == {"group.id": "g"}
    (notice,) = modern.notices
    assert notice.message.endswith("Remove it.")
    assert f"{name}.schemas.enable" in notice.message


@pytest.mark.parametrize("name", POINTLESS)
def test_a_key_that_needs_a_jvm_stays_and_is_pointed_out(name: str) -> None:
    modern = modernise({name: "somewhere"})
    assert modern.props == {name: "somewhere"}
    assert [notice.kind for notice in modern.notices] == [NoticeKind.NO_EFFECT]


def test_no_retired_key_is_in_a_table() -> None:
    assert ALL_CONNECTOR_NAMES.isdisjoint(OLD)
    assert set(DISTRIBUTED.names).isdisjoint(OLD)
    assert set(RENAMED.values()) <= ALL_CONNECTOR_NAMES
    assert set(POINTLESS) <= set(DISTRIBUTED.names)


def test_no_notice_reveals_a_value() -> None:
    modern = modernise(dict.fromkeys([*OLD, *POINTLESS], "s3cret"))
    assert len(modern.notices) == len(OLD) + len(POINTLESS)
    assert not any("s3cret" in str(notice) for notice in modern.notices)


KEYS = st.sampled_from([*OLD, *RENAMED.values(), "listeners", "group.id"])


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(KEYS, st.text(max_size=5)))
def test_each_retired_key_gets_one_notice_and_a_second_reading_changes_nothing(
    props: dict[str, str],
) -> None:
    modern = modernise(props)
    assert len(modern.notices) == len(props.keys() & set(OLD))
    assert modernise(modern.props).props == modern.props
    assert modernise(modern.props).notices == ()
