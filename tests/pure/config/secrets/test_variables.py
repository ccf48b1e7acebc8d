"""Placeholders are expanded as in Kafka: in one pass, grouped by path, and can be restored."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.secrets.variables import (
    ConfigData,
    ConfigVariable,
    expand_variables,
    find_variables,
    has_only_variables,
    restore_variables,
)
from sparkmirror.errors import ConfigError
from tests.support.golden import golden_json, golden_lines

CORPUS: list[dict[str, Any]] = golden_json("corpus/variables.json")


class Echo:
    """Answers with path and key, has no key with an x; a path with a t has a time to live."""

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        values = {key: f"<{path}|{key}>" for key in keys if "x" not in key}
        return ConfigData(values=values, ttl_ms=len(path) if "t" in path else None)


@dataclass
class Counting:
    """Records the paths and keys that it gets."""

    asked: list[tuple[str, frozenset[str]]] = field(default_factory=list)

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        self.asked.append((path, keys))
        return ConfigData(values=dict.fromkeys(keys, "${p:again}"))


class Broken:
    """Raises a ConfigError for every path."""

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        raise ConfigError.of("", f"{path} cannot be opened")


def test_random_configs_are_expanded_as_java_expands_them() -> None:
    for case in CORPUS:
        expansion = expand_variables(case["raw"], {"p": Echo(), "q": Echo()})
        assert expansion.values == case["values"], case
        assert expansion.ttls_ms == case["ttls_ms"], case


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${file:/a/b:key}", ConfigVariable("file", "/a/b", "key")),
        ("${env:NAME}", ConfigVariable("env", "", "NAME")),
        ("${file:a:b:c}", ConfigVariable("file", "a", "b:c")),
        ("${file::k}", ConfigVariable("file", "", "k")),
        ("${:k}", ConfigVariable("", "", "k")),
    ],
)
def test_a_placeholder_has_provider_path_and_key(text: str, expected: ConfigVariable) -> None:
    assert list(find_variables(f"x{text}y")) == [expected]


@pytest.mark.parametrize("text", ["${file}", "$file:a:b", "${file:a", "{file:a:b}", "${}"])
def test_text_without_colon_or_end_is_no_placeholder(text: str) -> None:
    assert list(find_variables(text)) == []


def test_placeholders_inside_one_value_are_replaced_independently() -> None:
    raw = {"jaas": 'M required username="${p:/t:user}" password="${p:/t:xx}" n="${nope:a:b}";'}
    expansion = expand_variables(raw, {"p": Echo()})
    expected = 'M required username="</t|user>" password="${p:/t:xx}" n="${nope:a:b}";'
    assert expansion.values == {"jaas": expected}
    assert [notice.kind for notice in expansion.unresolved] == [NoticeKind.UNRESOLVED_VARIABLE] * 2
    assert [notice.key for notice in expansion.unresolved] == ["jaas", "jaas"]
    assert "no provider 'nope'" in expansion.unresolved[1].message


def test_a_provider_is_asked_once_per_path_and_its_answer_is_not_expanded_again() -> None:
    provider = Counting()
    raw = {"a": "${p:/f:x}${p:/f:y}", "b": "${p:/f:x}", "c": "${p:/g:x}"}
    expansion = expand_variables(raw, {"p": provider})
    assert sorted(provider.asked) == [("/f", frozenset({"x", "y"})), ("/g", frozenset({"x"}))]
    assert expansion.values["b"] == "${p:again}"


def test_an_unreadable_path_is_a_fault_of_every_key_that_needs_it() -> None:
    raw = {"a": "${p:/f:x}", "b": "plain", "c": "${p:/f:y}"}
    with pytest.raises(ConfigError) as raised:
        expand_variables(raw, {"p": Broken()})
    assert [fault.key for fault in raised.value.faults] == ["a", "c"]
    assert raised.value.faults[0].message == "a: ${p:/f:x} cannot be fetched: /f cannot be opened"


def test_restoring_puts_placeholders_back() -> None:
    raw = {"a": "${p:/f:x}", "b": "1", "only.raw": "${p:/f:x}"}
    task = {"a": "secret", "b": "2", "task.index": "0"}
    assert restore_variables(raw, task) == {"a": "${p:/f:x}", "b": "2", "task.index": "0"}


def test_a_recorded_task_config_is_the_expanded_one_restored() -> None:
    """What Java stored for a task equals: the connector's config, expanded, then restored."""
    stored = {
        line["key_text"]: json.loads(line["value_text"])["properties"]
        for line in golden_lines("topics/config-providers.connect-configs.jsonl")
        if line["key_text"] in ("connector-prov", "task-prov-0") and line["value"]
    }
    connector, task = stored["connector-prov"], stored["task-prov-0"]

    class Secrets:
        def get(self, path: str, keys: frozenset[str]) -> ConfigData:
            values = {"alias": "source", "pw": "s3cret"} if path == "secrets.properties" else {}
            return ConfigData(values={key: values[key] for key in keys if key in values})

    expanded = expand_variables(connector, {"file": Secrets(), "env": Secrets()}).values
    assert expanded["source.cluster.alias"] == "source"
    assert expanded["note"] == "${file:secrets.properties:missing}"
    generated = {"task.class": task["task.class"]}
    assert restore_variables(connector, expanded | generated) == task


@pytest.mark.parametrize("text", ["${a:b}", " ${a:b:c}${d:e} "])
def test_text_of_placeholders_alone_has_only_variables(text: str) -> None:
    assert has_only_variables(text)


@pytest.mark.parametrize("text", ["", "  ", "a", "${a:b}x", "${a}"])
def test_text_with_anything_else_has_not_only_variables(text: str) -> None:
    assert not has_only_variables(text)


def test_no_repr_shows_an_expanded_value() -> None:
    expansion = expand_variables({"a": "${p:/f:k}"}, {"p": Echo()})
    assert "</f|k>" not in repr(expansion)
    assert "hunter2" not in repr(ConfigData(values={"pw": "hunter2"}))


@given(st.dictionaries(st.text(max_size=5), st.text(st.sampled_from("ab$}: \n"), max_size=20)))
@settings(max_examples=60, deadline=None)
def test_text_without_a_placeholder_is_not_changed(raw: dict[str, str]) -> None:
    expansion = expand_variables(raw, {"a": Echo(), "": Echo()})
    assert expansion.values == raw
    assert expansion.unresolved == ()


@given(st.dictionaries(st.text(max_size=3), st.text(st.sampled_from("${}:ab"), max_size=20)))
@settings(max_examples=60, deadline=None)
def test_restoring_undoes_expanding(raw: dict[str, str]) -> None:
    assert restore_variables(raw, expand_variables(raw, {"a": Echo(), "b": Echo()}).values) == raw
