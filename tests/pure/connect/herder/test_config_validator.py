"""Configs are validated before they are stored, with the recorded answers of Java workers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkmirror.config.definition.connector_config_validation import WorkerCapabilities
from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.connect.herder import config_validator
from sparkmirror.connect.herder.config_validator import ConfigValidator
from sparkmirror.errors import BadRequest, MirrorError, RequestFailed
from tests.support.connect.in_memory_herder import (
    SOURCE_CONFIG,
    WORKER_SETTINGS,
    named_config,
    running_herder,
)
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges

POLICIES = {
    "override-policy-none": WorkerCapabilities(override_policy="None"),
    "override-policy-principal": WorkerCapabilities(override_policy="Principal"),
    "override-policy-allowlist": WorkerCapabilities(
        override_policy="Allowlist", override_allowlist=("acks", "linger.ms")
    ),
}


def recorded(file: str, name: str) -> RecordedExchange:
    return next(one for one in recorded_exchanges(file) if one.name == name)


@pytest.mark.parametrize("name", POLICIES, ids=lambda name: name.rpartition("-")[2])
def test_an_override_that_the_policy_forbids_is_rejected(name: str) -> None:
    exchange = recorded("07-worker-variants", name)
    config = exchange.config | {"name": exchange.connector}
    with running_herder(replace(WORKER_SETTINGS, capabilities=POLICIES[name])) as harness:
        with pytest.raises(BadRequest) as rejection:
            harness.herder.create_connector(exchange.connector, config, None)
        assert harness.config_log.records == []
    assert str(rejection.value) == exchange.message


@pytest.mark.parametrize(
    "key",
    ["topic.filter.class", "replication.policy.class", "config.property.filter.class"],
)
def test_a_plug_in_of_a_module_that_the_operator_does_not_allow_is_rejected(key: str) -> None:
    config = named_config("c", SOURCE_CONFIG) | {key: "os:system"}
    with running_herder() as harness:
        with pytest.raises(BadRequest, match=r"sparkmirror\.plugin\.modules=os"):
            harness.herder.create_connector("c", config, None)
        assert harness.config_log.records == []
    allowing = WorkerCapabilities(plugin_modules=PluginModuleAllowlist(frozenset({"acme"})))
    ConfigValidator(allowing, {}).require_valid({**config, key: "acme.mine:Plugin"})


WRONG_CLASSES = [
    one
    for one in recorded_exchanges("02-plugin-config")
    if one.path.endswith("/validate")
    and one.status in (400, 500)
    and one.name != "validate-override"  # Java fails on the value of an override
    and "REDACTED" not in one.message
    and "Cannot invoke" not in one.message
]


@pytest.mark.parametrize("exchange", WRONG_CLASSES, ids=lambda one: f"{one.seq}")
def test_a_wrong_class_is_rejected_as_recorded(exchange: RecordedExchange) -> None:
    with pytest.raises(MirrorError) as rejection:
        ConfigValidator(WorkerCapabilities(), {}).validate(exchange.plugin, exchange.config)
    assert isinstance(rejection.value, BadRequest if exchange.status == 400 else RequestFailed)
    assert str(rejection.value) == exchange.message


def test_plugins_are_listed_as_recorded() -> None:
    for name, only in (("plugins", True), ("plugins-all", False)):
        assert (
            config_validator.list_plugins(connectors_only=only)
            == recorded("01-empty-worker", name).body
        )
