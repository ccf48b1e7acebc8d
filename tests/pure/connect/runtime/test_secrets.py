"""What stands behind a placeholder is used and never seen: not stored, not shown, not logged."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from sparkmirror.config.secrets.variables import ConfigData
from sparkmirror.connect.runtime.config_transformer import ConfigTransformer, task_configs_to_store
from sparkmirror.errors import BadRequest, ConfigError, MirrorError, RequestFailed
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    named_config,
    poll_until,
    running_herder,
)

SECRET = "s3cret-w0rd"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required password="hush-hush";'


@dataclass
class Vault:
    """A provider in memory."""

    values: dict[str, str] = field(default_factory=lambda: {"pw": SECRET, "n": "many"})
    ttl_ms: int | None = None
    asked: int = 0

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        self.asked += 1
        if path == "lost":
            raise ConfigError.of("", "Could not read properties from file lost")
        found = {key: self.values[key] for key in keys if key in self.values}
        return ConfigData(values=found, ttl_ms=self.ttl_ms)


WITH_SECRET = named_config("c", SOURCE_CONFIG) | {
    "test.password": "${vault:x:pw}",
    "target.cluster.sasl.jaas.config": JAAS,
}


def test_a_secret_reaches_the_connector_and_its_tasks_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with running_herder(providers={"vault": Vault()}) as stage:
        stage.probe.failing_connectors.add("c")  # it fails with the secret in its words
        stage.herder.create_connector("c", WITH_SECRET, None)
        poll_until(lambda: bool(stage.states("c")), "a status")
        poll_until(lambda: bool(stage.herder.connector_status("c").connector.trace), "told why")
        assert "password [hidden]" in (stage.herder.connector_status("c").connector.trace or "")
        stage.probe.failing_connectors.clear()
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.probe.connector("c").config["test.password"] == SECRET
        assert stage.probe.task_group("c").plans[-1].tasks[0]["test.password"] == SECRET
        stage.probe.task_group("c").fail(0, MirrorError(f"refused {SECRET} and hush-hush"))
        stage.probe.task_group("c").listener.on_running(1, f"held because of {SECRET}")
        stage.wait_for_states("c", "RUNNING", "FAILED", "RUNNING")
        poll_until(lambda: bool(stage.herder.task_status("c", 1).trace), "the remark")
        stage.probe.connector("c").context.raise_error(MirrorError(f"bad {SECRET}"))
        stage.wait_for_states("c", "FAILED", "FAILED", "RUNNING")
        seen = [
            *(repr(record) for record in (*stage.config_log.records, *stage.status_log.records)),
            *(record.getMessage() for record in caplog.records),
            repr(stage.herder.connector_info("c")), repr(stage.herder.task_configs("c")),
            repr(stage.herder.connector_status("c")), repr(stage.probe.task_group("c").plans),
        ]  # fmt: skip
        assert not [text for text in seen if SECRET in text]
        assert stage.herder.task_configs("c")[0].config["test.password"] == "${vault:x:pw}"
        assert not [r for r in stage.status_log.records if b"hush-hush" in (r.value or b"")]


def test_a_fault_of_a_fetched_value_is_told_without_it() -> None:
    config = named_config("c", HEARTBEAT_CONFIG) | {"admin.timeout.ms": "${vault:x:pw}"}
    with running_herder(providers={"vault": Vault()}) as stage:
        with pytest.raises(BadRequest) as refusal:
            stage.herder.create_connector("c", config, None)
        assert "admin.timeout.ms" in str(refusal.value)
        answer = stage.herder.validate_connector_config("MirrorHeartbeat", config)
    assert SECRET not in str(refusal.value) + str(answer)
    assert answer["error_count"] == 1


def test_a_config_without_a_class_is_echoed_as_it_was_written() -> None:
    config = {"note": "${vault:x:pw}", "name": "c"}
    told = "Connector config {note=${vault:x:pw}, name=c} contains no connector type"
    with running_herder(providers={"vault": Vault()}) as stage:
        with pytest.raises(BadRequest) as refusal:
            stage.herder.create_connector("c", config, None)
        assert str(refusal.value) == told
        with pytest.raises(RequestFailed) as failure:
            stage.herder.validate_connector_config("MirrorHeartbeat", config)
        assert str(failure.value).endswith(told)
        config["connector.class"] = "${vault:x:pw}"
        for ask in (
            lambda: stage.herder.create_connector("c", config, None),
            lambda: stage.herder.validate_connector_config("MirrorHeartbeat", config),
        ):
            with pytest.raises(MirrorError) as fault:
                ask()
            assert SECRET not in str(fault.value)


def test_an_answer_shows_what_was_written_not_what_was_fetched() -> None:
    config = named_config("c", HEARTBEAT_CONFIG) | {"source.cluster.alias": "${vault:x:n}"}
    with running_herder(providers={"vault": Vault()}) as stage:
        answer = stage.herder.validate_connector_config("MirrorHeartbeat", config)
    values = {entry["value"]["name"]: entry["value"]["value"] for entry in answer["configs"]}
    assert values["source.cluster.alias"] == "${vault:x:n}"


def test_a_provider_that_cannot_be_read_fails_the_request() -> None:
    config = named_config("c", HEARTBEAT_CONFIG) | {"source.cluster.alias": "${vault:lost:alias}"}
    with running_herder(providers={"vault": Vault()}) as stage:
        with pytest.raises(RequestFailed, match="Could not read properties from file lost"):
            stage.herder.create_connector("c", config, None)
        with pytest.raises(RequestFailed, match=r"^org\.apache\.kafka\.common\.config\.ConfigExc"):
            stage.herder.validate_connector_config("MirrorHeartbeat", config)
        assert stage.herder.connectors() == ()


def test_values_that_expire_restart_the_connector_and_its_tasks() -> None:
    vault = Vault(ttl_ms=20)
    with running_herder(providers={"vault": vault}) as stage:
        stage.herder.create_connector("c", WITH_SECRET, None)
        poll_until(lambda: stage.probe.calls.count("start c") > 1, "begun anew")
        poll_until(lambda: "restart tasks c [0, 1]" in stage.probe.calls, "the tasks too")
    with running_herder(providers={"vault": vault}) as stage:
        stage.herder.create_connector("c", WITH_SECRET | {"config.action.reload": "none"}, None)
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(stage.probe.connectors["c"]) == 1


def test_retired_keys_are_read_as_they_were_meant_and_stored_as_they_were_sent() -> None:
    config = named_config("c", SOURCE_CONFIG) | {"topics.blacklist": "payments"}
    with running_herder() as stage:
        stage.herder.create_connector("c", config, None)
        stage.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.probe.connector("c").config["topics.exclude"] == "payments"
        assert stage.herder.connector_info("c").config == config


def test_each_part_of_a_value_is_a_secret_too() -> None:
    expanded = ConfigTransformer({"vault": Vault()}).transform(
        {"url": "x://u:${vault:x:pw}@h", "plain": "abcd"}
    )
    assert expanded.values["url"] == f"x://u:{SECRET}@h"
    assert expanded.secrets == {SECRET, f"x://u:{SECRET}@h"}
    assert SECRET not in repr(expanded)


def test_stored_task_configs_name_their_class_and_keep_placeholders() -> None:
    connector = {"connector.class": "MirrorHeartbeat", "a": "${vault:x:pw}", "b": "plain"}
    stored = task_configs_to_store(connector, [{**connector, "a": SECRET, "c": "own"}])
    assert stored == [
        {
            **connector,
            "c": "own",
            "task.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatTask",
        }
    ]
