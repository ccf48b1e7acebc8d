"""Topic configs are synced to remote topics as in MirrorMaker 2."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.topics.topic_configs import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigSource,
    creation_configs,
    effective_operations,
    sync_operations,
)
from tests.support.connect.replication_rules import config_property_filter_of
from tests.support.golden import golden_json

RECORDED: list[dict[str, Any]] = golden_json("vectors/topic-config-filter.json")
ENTRIES = [
    ConfigEntry(
        name=name,
        value=value,
        source=ConfigSource(source),
        sensitive=sensitive,
        read_only=read_only,
    )
    for name, value, source, sensitive, read_only, _ in RECORDED[0][
        "entries_name_value_source_sensitive_readonly_default"
    ]
]
EXCLUDING_NOTHING = config_property_filter_of({"config.properties.exclude": ""})


def explicit(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name=name, value=value, source=ConfigSource.DYNAMIC_TOPIC_CONFIG)


def default(name: str, value: str) -> ConfigEntry:
    return ConfigEntry(name=name, value=value, source=ConfigSource.DEFAULT_CONFIG)


def set_to(name: str, value: str) -> AlterConfigOp:
    return AlterConfigOp(name=name, operation=AlterConfigOpType.SET, value=value)


def delete(name: str) -> AlterConfigOp:
    return AlterConfigOp(name=name, operation=AlterConfigOpType.DELETE)


def test_an_entry_is_default_exactly_when_java_says_so() -> None:
    rows = RECORDED[0]["entries_name_value_source_sensitive_readonly_default"]
    assert [entry.is_default for entry in ENTRIES] == [row[-1] for row in rows]


@pytest.mark.parametrize("case", range(1, len(RECORDED)))
def test_entries_are_kept_or_dropped_as_recorded(case: int) -> None:
    recorded = RECORDED[case]
    wanted = config_property_filter_of(recorded["filter_config"])
    if recorded["incremental"]:
        kept = [operation.name for operation in sync_operations(ENTRIES, wanted)]
    else:
        kept = list(creation_configs(ENTRIES, wanted))
    assert sorted(kept) == sorted(recorded["kept"])
    assert {entry.name for entry in ENTRIES} - set(kept) == set(recorded["dropped"])


def test_config_property_filtering() -> None:
    """Upstream's: the periodic sync includes defaults, and drops excluded configs."""
    entries = [
        explicit("name-1", "value-1"),
        default("name-2", "value-2"),
        explicit("min.insync.replicas", "2"),
    ]
    found = sync_operations(entries, config_property_filter_of({}))
    assert found == (set_to("name-1", "value-1"), delete("name-2"))


def test_config_property_filtering_with_alter_configs() -> None:
    """Upstream's: a new topic is created without the source's defaults."""
    entries = [explicit("name-1", "value-1"), default("name-2", "value-2")]
    found = creation_configs(entries, config_property_filter_of({}))
    assert found == {"name-1": "value-1"}


def test_config_property_filtering_with_alter_configs_and_source_default() -> None:
    """Upstream's: `use.defaults.from=source` copies the source's defaults as values."""
    entries = [explicit("name-1", "value-1"), default("name-2", "value-2")]
    wanted = config_property_filter_of({"use.defaults.from": "source"})
    assert creation_configs(entries, wanted) == {"name-1": "value-1", "name-2": "value-2"}
    assert sync_operations(entries, wanted) == (
        set_to("name-1", "value-1"),
        set_to("name-2", "value-2"),
    )


def test_new_topic_configs() -> None:
    """Upstream's: a new topic gets no excluded configs."""
    wanted = config_property_filter_of({"config.properties.exclude": r"name-1\..*, message.*"})
    entries = [
        explicit("name-1.a", "1"),
        explicit("name-2", "2"),
        explicit("message.timestamp.type", "LogAppendTime"),
        explicit("min.insync.replicas", "2"),
    ]
    assert creation_configs(entries, wanted) == {"name-2": "2", "min.insync.replicas": "2"}


def test_sensitive_and_broker_configs_are_not_copied() -> None:
    entries = [
        ConfigEntry(
            name="secret",
            value=None,
            source=ConfigSource.DYNAMIC_TOPIC_CONFIG,
            sensitive=True,
        ),
        ConfigEntry(name="imposed", value="1", source=ConfigSource.STATIC_BROKER_CONFIG),
        ConfigEntry(name="from.brokers", value="1", source=ConfigSource.DYNAMIC_BROKER_CONFIG),
    ]
    assert creation_configs(entries, EXCLUDING_NOTHING) == {"from.brokers": "1"}
    assert sync_operations(entries, EXCLUDING_NOTHING) == (set_to("from.brokers", "1"),)


def test_only_effective_operations_are_kept() -> None:
    operations = (
        set_to("same", "1"),
        set_to("other", "2"),
        set_to("unset", "3"),
        set_to("by.default", "4"),
        delete("explicit"),
        delete("default"),
        delete("unknown"),
    )
    target = [
        explicit("same", "1"),
        explicit("other", "1"),
        default("by.default", "4"),
        explicit("explicit", "5"),
        default("default", "6"),
        explicit("by.hand", "7"),
    ]
    assert effective_operations(operations, target) == (
        set_to("other", "2"),
        set_to("unset", "3"),
        set_to("by.default", "4"),
        delete("explicit"),
    )


def applied(
    operations: tuple[AlterConfigOp, ...], configs: dict[str, str]
) -> dict[str, str | None]:
    state: dict[str, str | None] = dict(configs)
    for operation in operations:
        if operation.operation is AlterConfigOpType.SET:
            state[operation.name] = operation.value
        else:
            state.pop(operation.name, None)
    return state


settings_of_a_topic = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("12"))


@settings(max_examples=30)
@given(explicitly=settings_of_a_topic, defaults=settings_of_a_topic, target=settings_of_a_topic)
def test_alterations_have_javas_result_and_a_second_sync_has_none(
    explicitly: dict[str, str], defaults: dict[str, str], target: dict[str, str]
) -> None:
    source = [default(name, value) for name, value in defaults.items() if name not in explicitly]
    source += [explicit(name, value) for name, value in explicitly.items()]
    operations = sync_operations(source, EXCLUDING_NOTHING)
    changes = effective_operations(operations, [explicit(*item) for item in target.items()])
    reached = applied(operations, target)
    assert applied(changes, target) == reached
    after = [explicit(name, str(value)) for name, value in reached.items()]
    assert effective_operations(operations, after) == ()
