"""Which Python modules a worker may load policies and filters from."""

from __future__ import annotations

import pytest

from sparkmirror.config.definition.connector_config_validation import (
    WorkerCapabilities,
    validate_connector_config,
)
from sparkmirror.config.definition.java_classes import CHECKPOINT_CONNECTOR, SOURCE_CONNECTOR
from sparkmirror.config.plugin_module_allowlist import (
    PLUGIN_CLASS_KEYS,
    PluginModuleAllowlist,
    plugin_modules_variable,
    with_plugin_modules,
)
from sparkmirror.errors import ConfigFault


def test_without_a_list_no_module_is_allowed() -> None:
    refusal = PluginModuleAllowlist.from_properties({}).refusal("topic.filter.class", "os:system")
    assert refusal == (
        "Invalid value os:system for configuration topic.filter.class: this worker loads no plug-in"
        " of the module os; the operator adds sparkmirror.plugin.modules=os to its file"
    )
    assert not PluginModuleAllowlist().allows_module("sparkmirror.cli.worker")


@pytest.mark.parametrize(
    ("module", "is_allowed"),
    [
        ("acme", True),
        ("acme.filters", True),
        ("other.policies", True),
        ("other", False),
        ("acmeos", False),
        ("os", False),
    ],
)
def test_an_entry_stands_for_a_module_and_those_below_it(module: str, is_allowed: bool) -> None:
    modules = PluginModuleAllowlist.from_properties(
        {"sparkmirror.plugin.modules": "acme, other.policies"}
    )
    assert modules.allows_module(module) is is_allowed


@pytest.mark.parametrize("key", PLUGIN_CLASS_KEYS)
@pytest.mark.parametrize("prefix", ["", "A->B."])
def test_a_module_that_the_file_itself_names_needs_no_entry(prefix: str, key: str) -> None:
    modules = PluginModuleAllowlist.from_properties({f"{prefix}{key}": " acme.mine:Filter "})
    assert modules.names == {"acme.mine"}


def test_only_keys_of_plug_ins_name_modules() -> None:
    properties = {"bootstrap.servers": "kafka:9092", "client.id": "acme:x", "rest.class": "os:x"}
    assert PluginModuleAllowlist.from_properties(properties).names == frozenset()


def test_the_environment_carries_the_modules_of_the_file_and_of_the_process() -> None:
    more = with_plugin_modules(
        {"sparkmirror.plugin.modules": "b"}, {"SPARKMIRROR_PLUGIN_MODULES": "a", "HOME": "/h"}
    )
    assert more["HOME"] == "/h"
    assert PluginModuleAllowlist.from_environment(more).names == {"a", "b"}
    assert with_plugin_modules({}, {"HOME": "/h"}) == {"HOME": "/h"}


@pytest.mark.parametrize("connector", [SOURCE_CONNECTOR, CHECKPOINT_CONNECTOR])
def test_a_connector_config_names_only_plug_ins_of_allowed_modules(connector: str) -> None:
    config: dict[str, str | None] = {
        "name": "n",
        "connector.class": connector,
        "source.cluster.alias": "a",
        "topic.filter.class": "acme.filters:Mine",
        "replication.policy.class": "os:system",
    }
    worker = WorkerCapabilities(plugin_modules=PluginModuleAllowlist(frozenset({"acme"})))
    (error,) = validate_connector_config(config, worker).errors
    assert error.startswith("Invalid value os:system for configuration replication.policy.class: ")


def test_a_function_of_a_module_that_is_not_allowed_is_refused_before_spark_is_asked() -> None:
    def ask(_: object) -> list[ConfigFault]:
        raise AssertionError

    config: dict[str, str | None] = {
        "name": "n",
        "connector.class": SOURCE_CONNECTOR,
        "source.cluster.alias": "a",
        "sparkmirror.transform": "os:system",
    }
    worker = WorkerCapabilities(transformation_faults=ask)
    (error,) = validate_connector_config(config, worker).errors
    assert error.startswith("Invalid value os:system for configuration sparkmirror.transform: ")


def test_a_function_that_the_file_names_needs_no_entry() -> None:
    file = {"A->B.sparkmirror.transform": "rules:mask"}
    assert PluginModuleAllowlist.from_properties(file).allows_module("rules")


def test_executors_get_the_list_of_the_worker() -> None:
    environment = with_plugin_modules({"sparkmirror.plugin.modules": "rules, acme"}, {"A": "b"})
    handed_on = plugin_modules_variable(environment)
    assert PluginModuleAllowlist.from_environment(handed_on).names == {"rules", "acme"}
    assert set(handed_on) == {"SPARKMIRROR_PLUGIN_MODULES"}
    assert plugin_modules_variable({"A": "b"}) == {}
