"""Values of placeholders reach connectors and are never stored, shown or logged."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from sparkmirror.config.secrets.variables import ConfigData
from sparkmirror.connect.connectors.shared.worker_client_config import changing_client_values
from sparkmirror.connect.runtime import worker_connectors
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
    """A config provider in memory."""

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
    with running_herder(providers={"vault": Vault()}) as harness:
        harness.probe.failing_connectors.add("c")  # its error contains the secret
        harness.herder.create_connector("c", WITH_SECRET, None)
        poll_until(lambda: bool(harness.states("c")), "a status")
        poll_until(
            lambda: bool(harness.herder.connector_status("c").connector.trace),
            "the trace in the status",
        )
        assert "password [hidden]" in (harness.herder.connector_status("c").connector.trace or "")
        harness.probe.failing_connectors.clear()
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert harness.probe.connector("c").config["test.password"] == SECRET
        assert harness.probe.task_group("c").plans[-1].tasks[0]["test.password"] == SECRET
        harness.probe.task_group("c").fail(0, MirrorError(f"refused {SECRET} and hush-hush"))
        harness.probe.task_group("c").listener.on_running(1, f"held because of {SECRET}")
        harness.wait_for_states("c", "RUNNING", "FAILED", "RUNNING")
        poll_until(lambda: bool(harness.herder.task_status("c", 1).trace), "the problem")
        context = harness.probe.connector("c").context
        context.report_problem(f"bad {SECRET}")
        poll_until(
            lambda: "bad" in (harness.herder.connector_status("c").connector.trace or ""),
            "the problem",
        )
        context.raise_error(MirrorError(f"bad {SECRET}"))
        harness.wait_for_states("c", "FAILED", "FAILED", "RUNNING")
        seen = [
            *(repr(record) for record in harness.config_log.records),
            *(repr(record) for record in harness.status_log.records),
            *(record.getMessage() for record in caplog.records),
            repr(harness.herder.connector_info("c")), repr(harness.herder.task_configs("c")),
            repr(harness.herder.connector_status("c")), repr(harness.probe.task_group("c").plans),
        ]  # fmt: skip
        assert not [text for text in seen if SECRET in text]
        assert harness.herder.task_configs("c")[0].config["test.password"] == "${vault:x:pw}"
        assert not [r for r in harness.status_log.records if b"hush-hush" in (r.value or b"")]


def test_an_error_about_a_fetched_value_does_not_show_it() -> None:
    config = named_config("c", HEARTBEAT_CONFIG) | {"admin.timeout.ms": "${vault:x:pw}"}
    with running_herder(providers={"vault": Vault()}) as harness:
        with pytest.raises(BadRequest) as refusal:
            harness.herder.create_connector("c", config, None)
        assert "admin.timeout.ms" in str(refusal.value)
        answer = harness.herder.validate_connector_config("MirrorHeartbeat", config)
    assert SECRET not in str(refusal.value) + str(answer)
    assert answer["error_count"] == 1


def test_the_error_of_a_config_without_a_class_shows_the_placeholders() -> None:
    config = {"note": "${vault:x:pw}", "name": "c"}
    message = "Connector config {note=${vault:x:pw}, name=c} contains no connector type"
    with running_herder(providers={"vault": Vault()}) as harness:
        with pytest.raises(BadRequest) as refusal:
            harness.herder.create_connector("c", config, None)
        assert str(refusal.value) == message
        with pytest.raises(RequestFailed) as failure:
            harness.herder.validate_connector_config("MirrorHeartbeat", config)
        assert str(failure.value).endswith(message)
        config["connector.class"] = "${vault:x:pw}"
        for ask in (
            lambda: harness.herder.create_connector("c", config, None),
            lambda: harness.herder.validate_connector_config("MirrorHeartbeat", config),
        ):
            with pytest.raises(MirrorError) as fault:
                ask()
            assert SECRET not in str(fault.value)


def test_a_validate_answer_shows_placeholders_instead_of_fetched_values() -> None:
    config = named_config("c", HEARTBEAT_CONFIG) | {"source.cluster.alias": "${vault:x:n}"}
    with running_herder(providers={"vault": Vault()}) as harness:
        answer = harness.herder.validate_connector_config("MirrorHeartbeat", config)
    values = {entry["value"]["name"]: entry["value"]["value"] for entry in answer["configs"]}
    assert values["source.cluster.alias"] == "${vault:x:n}"


def test_a_provider_that_cannot_be_read_fails_the_request() -> None:
    config = named_config("c", HEARTBEAT_CONFIG) | {"source.cluster.alias": "${vault:lost:alias}"}
    with running_herder(providers={"vault": Vault()}) as harness:
        with pytest.raises(RequestFailed, match="Could not read properties from file lost"):
            harness.herder.create_connector("c", config, None)
        with pytest.raises(RequestFailed, match=r"^org\.apache\.kafka\.common\.config\.ConfigExc"):
            harness.herder.validate_connector_config("MirrorHeartbeat", config)
        assert harness.herder.connectors() == ()


def test_values_that_expire_restart_the_connector_and_its_tasks() -> None:
    vault = Vault(ttl_ms=20)
    with running_herder(providers={"vault": vault}) as harness:
        harness.herder.create_connector("c", WITH_SECRET, None)
        poll_until(lambda: harness.probe.calls.count("start c") > 1, "a second start")
        poll_until(lambda: "restart tasks c [0, 1]" in harness.probe.calls, "the tasks too")
    with running_herder(providers={"vault": vault}) as harness:
        harness.herder.create_connector("c", WITH_SECRET | {"config.action.reload": "none"}, None)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(harness.probe.connectors["c"]) == 1


def test_values_that_change_restart_the_connector_and_its_tasks_with_the_new_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_connectors, "VALUE_CHECK_INTERVAL_S", 0.02)
    vault = Vault()
    with running_herder(providers={"vault": vault}) as harness:
        harness.herder.create_connector("c", WITH_SECRET, None)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        vault.values = {}  # the file is being written: nothing can be used now
        asked = vault.asked
        poll_until(lambda: vault.asked > asked + 2, "more checks")
        assert harness.probe.calls.count("start c") == 1
        vault.values = {"pw": "the-next-secret"}
        poll_until(lambda: "restart tasks c [0, 1]" in harness.probe.calls, "a restart")
        poll_until(
            lambda: harness.probe.connector("c").config["test.password"] == "the-next-secret",
            "a connector with the new value",
        )
        poll_until(
            lambda: (
                harness.probe.task_group("c").plans[-1].tasks[0]["test.password"]
                == "the-next-secret"
            ),
            "tasks with the new value",
        )
        plan = harness.probe.task_group("c").plans[-1]
        assert plan.config["test.password"] == "the-next-secret"
        assert harness.probe.calls.count("start c") == 2


def test_values_that_change_are_ignored_if_nothing_shall_be_reloaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_connectors, "VALUE_CHECK_INTERVAL_S", 0.02)
    vault = Vault()
    with running_herder(providers={"vault": vault}) as harness:
        harness.herder.create_connector("c", WITH_SECRET | {"config.action.reload": "none"}, None)
        harness.herder.create_connector("d", WITH_SECRET | {"name": "d"}, None)
        for name in ("c", "d"):
            harness.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
        vault.values = {"pw": "the-next-secret"}
        poll_until(lambda: "restart tasks d [0, 1]" in harness.probe.calls, "the other restarts")
        assert harness.probe.calls.count("start c") == 1


def test_changed_values_of_the_workers_file_restart_connectors_without_placeholders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_connectors, "VALUE_CHECK_INTERVAL_S", 0.02)
    values = {"producer.sasl.jaas.config": "first"}
    with running_herder(read_worker_values=lambda: dict(values)) as harness:
        config = named_config("c", SOURCE_CONFIG)
        harness.herder.create_connector("c", config, None)
        harness.herder.create_connector(
            "d", config | {"name": "d", "config.action.reload": "none"}, None
        )
        for name in ("c", "d"):
            harness.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
        # The group may divide the work before the herder has read a config: then it starts twice.
        starts = {name: harness.probe.calls.count(f"start {name}") for name in ("c", "d")}
        values["producer.sasl.jaas.config"] = "second"
        poll_until(lambda: "restart tasks c [0, 1]" in harness.probe.calls, "a restart")
        poll_until(
            lambda: harness.probe.calls.count("start c") == starts["c"] + 1, "another instance"
        )
        assert harness.probe.calls.count("start d") == starts["d"]


def test_only_client_properties_with_placeholders_are_compared() -> None:
    written = {
        "producer.sasl.jaas.config": "x ${file:/f:a};",
        "sasl.jaas.config": "${file:/f:b}",
        "ssl.key.password": "plain",
        "listeners.https.ssl.key.password": "${file:/f:c}",
    }
    read = changing_client_values(written, lambda: dict.fromkeys(written, "now"))
    assert read is not None
    assert read() == {"producer.sasl.jaas.config": "now", "sasl.jaas.config": "now"}
    assert changing_client_values({"sasl.jaas.config": "plain"}, dict) is None


def test_deprecated_keys_have_effect_and_are_stored_unchanged() -> None:
    config = named_config("c", SOURCE_CONFIG) | {"topics.blacklist": "payments"}
    with running_herder() as harness:
        harness.herder.create_connector("c", config, None)
        harness.wait_for_states("c", "RUNNING", "RUNNING", "RUNNING")
        assert harness.probe.connector("c").config["topics.exclude"] == "payments"
        assert harness.herder.connector_info("c").config == config


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
