"""Deprecated keys keep their meaning; one notice each says what to write instead."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.files.deprecated_keys import (
    IGNORED_KEYS,
    REMOVED_KEYS,
    RENAMED_KEYS,
    migrate_deprecated_keys,
)
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.tables.distributed import DISTRIBUTED

OLD = [*RENAMED_KEYS, *REMOVED_KEYS, "rest.port", "rest.host.name"]


@pytest.mark.parametrize(("old", "new"), RENAMED_KEYS.items())
def test_a_renamed_key_is_read_as_its_successor(old: str, new: str) -> None:
    modern = migrate_deprecated_keys({old: "a", "other": "b"})
    assert modern.props == {new: "a", "other": "b"}
    (notice,) = modern.notices
    assert notice.kind is NoticeKind.DEPRECATED_KEY
    assert notice.key == old
    assert f"read as {new}" in notice.message


@pytest.mark.parametrize(("old", "new"), RENAMED_KEYS.items())
def test_the_successor_wins_if_both_are_set(old: str, new: str) -> None:
    modern = migrate_deprecated_keys({old: "a", new: "b"})
    assert modern.props == {new: "b"}
    (notice,) = modern.notices
    assert "ignored" in notice.message


def test_keys_of_a_flow_are_renamed_under_their_prefix() -> None:
    modern = migrate_deprecated_keys(
        {"A->B.topics.blacklist": "x", "C.topics.blacklist": "y"}, ("", "A->B.")
    )
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
    modern = migrate_deprecated_keys(given_props)
    assert modern.props == {"listeners": listeners}
    assert len(modern.notices) == len(given_props.keys() - {"listeners"})


@pytest.mark.parametrize("name", REMOVED_KEYS)
def test_a_removed_key_is_dropped_with_the_keys_below_it(name: str) -> None:
    modern = migrate_deprecated_keys(
        {name: "x", f"{name}.schemas.enable": "false", "group.id": "g"}
    )
    assert modern.props == {"group.id": "g"}
    (notice,) = modern.notices
    assert notice.message.endswith("Remove it.")
    assert f"{name}.schemas.enable" in notice.message


@pytest.mark.parametrize("name", IGNORED_KEYS)
def test_a_key_that_needs_a_jvm_is_kept_with_a_notice(name: str) -> None:
    modern = migrate_deprecated_keys({name: "somewhere"})
    assert modern.props == {name: "somewhere"}
    assert [notice.kind for notice in modern.notices] == [NoticeKind.NO_EFFECT]


def test_no_deprecated_key_is_in_a_table() -> None:
    assert ALL_CONNECTOR_NAMES.isdisjoint(OLD)
    assert set(DISTRIBUTED.names).isdisjoint(OLD)
    assert set(RENAMED_KEYS.values()) <= ALL_CONNECTOR_NAMES
    assert set(IGNORED_KEYS) <= set(DISTRIBUTED.names)


def test_no_notice_reveals_a_value() -> None:
    modern = migrate_deprecated_keys(dict.fromkeys([*OLD, *IGNORED_KEYS], "s3cret"))
    assert len(modern.notices) == len(OLD) + len(IGNORED_KEYS)
    assert not any("s3cret" in str(notice) for notice in modern.notices)


KEYS = st.sampled_from([*OLD, *RENAMED_KEYS.values(), "listeners", "group.id"])


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(KEYS, st.text(max_size=5)))
def test_each_deprecated_key_gets_one_notice_and_a_second_migration_changes_nothing(
    props: dict[str, str],
) -> None:
    modern = migrate_deprecated_keys(props)
    assert len(modern.notices) == len(props.keys() & set(OLD))
    assert migrate_deprecated_keys(modern.props).props == modern.props
    assert migrate_deprecated_keys(modern.props).notices == ()
