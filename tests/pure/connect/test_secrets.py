"""What stands behind a placeholder is used and never seen: not stored, not shown, not logged."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from sparkmirror.config.variables import Answer
from sparkmirror.connect.expansion import Expander, stored_tasks
from sparkmirror.errors import BadRequest, ConfigError, MirrorError, RequestFailed
from tests.support.herders import HEARTBEAT, SOURCE, eventually, herding, named

SECRET = "s3cret-w0rd"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required password="hush-hush";'


@dataclass
class Vault:
    """A provider in memory."""

    values: dict[str, str] = field(default_factory=lambda: {"pw": SECRET, "n": "many"})
    ttl_ms: int | None = None
    asked: int = 0

    def get(self, path: str, keys: frozenset[str]) -> Answer:
        self.asked += 1
        if path == "lost":
            raise ConfigError.of("", "Could not read properties from file lost")
        found = {key: self.values[key] for key in keys if key in self.values}
        return Answer(values=found, ttl_ms=self.ttl_ms)


WITH_SECRET = named("c", SOURCE) | {
    "test.password": "${vault:x:pw}",
    "target.cluster.sasl.jaas.config": JAAS,
}


def test_a_secret_reaches_the_connector_and_its_tasks_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    with herding(providers={"vault": Vault()}) as stage:
        stage.watch.failing.add("c")  # it fails with the secret in its words
        stage.herder.create("c", WITH_SECRET, None)
        eventually(lambda: bool(stage.states("c")), "a status")
        eventually(lambda: bool(stage.herder.status("c").connector.trace), "told why")
        assert "password [hidden]" in (stage.herder.status("c").connector.trace or "")
        stage.watch.failing.clear()
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.watch.connector("c").config["test.password"] == SECRET
        assert stage.watch.group("c").plans[-1].tasks[0]["test.password"] == SECRET
        stage.watch.group("c").fail(0, MirrorError(f"refused {SECRET} and hush-hush"))
        stage.watch.group("c").listener.on_running(1, f"held because of {SECRET}")
        stage.reaches("c", "RUNNING", "FAILED", "RUNNING")
        eventually(lambda: bool(stage.herder.task_status("c", 1).trace), "the remark")
        stage.watch.connector("c").context.raise_error(MirrorError(f"bad {SECRET}"))
        stage.reaches("c", "FAILED", "FAILED", "RUNNING")
        seen = [
            *(repr(record) for record in (*stage.configs.records, *stage.statuses.records)),
            *(record.getMessage() for record in caplog.records),
            repr(stage.herder.info("c")), repr(stage.herder.tasks("c")),
            repr(stage.herder.status("c")), repr(stage.watch.group("c").plans),
        ]  # fmt: skip
        assert not [text for text in seen if SECRET in text]
        assert stage.herder.tasks("c")[0].config["test.password"] == "${vault:x:pw}"
        assert not [r for r in stage.statuses.records if b"hush-hush" in (r.value or b"")]


def test_a_fault_of_a_fetched_value_is_told_without_it() -> None:
    config = named("c", HEARTBEAT) | {"admin.timeout.ms": "${vault:x:pw}"}
    with herding(providers={"vault": Vault()}) as stage:
        with pytest.raises(BadRequest) as refusal:
            stage.herder.create("c", config, None)
        assert "admin.timeout.ms" in str(refusal.value)
        answer = stage.herder.validate("MirrorHeartbeat", config)
    assert SECRET not in str(refusal.value) + str(answer)
    assert answer["error_count"] == 1


def test_a_config_without_a_class_is_echoed_as_it_was_written() -> None:
    config = {"note": "${vault:x:pw}", "name": "c"}
    told = "Connector config {note=${vault:x:pw}, name=c} contains no connector type"
    with herding(providers={"vault": Vault()}) as stage:
        with pytest.raises(BadRequest) as refusal:
            stage.herder.create("c", config, None)
        assert str(refusal.value) == told
        with pytest.raises(RequestFailed) as failure:
            stage.herder.validate("MirrorHeartbeat", config)
        assert str(failure.value).endswith(told)
        config["connector.class"] = "${vault:x:pw}"
        for ask in (
            lambda: stage.herder.create("c", config, None),
            lambda: stage.herder.validate("MirrorHeartbeat", config),
        ):
            with pytest.raises(MirrorError) as fault:
                ask()
            assert SECRET not in str(fault.value)


def test_an_answer_shows_what_was_written_not_what_was_fetched() -> None:
    config = named("c", HEARTBEAT) | {"source.cluster.alias": "${vault:x:n}"}
    with herding(providers={"vault": Vault()}) as stage:
        answer = stage.herder.validate("MirrorHeartbeat", config)
    values = {entry["value"]["name"]: entry["value"]["value"] for entry in answer["configs"]}
    assert values["source.cluster.alias"] == "${vault:x:n}"


def test_a_provider_that_cannot_be_read_fails_the_request() -> None:
    config = named("c", HEARTBEAT) | {"source.cluster.alias": "${vault:lost:alias}"}
    with herding(providers={"vault": Vault()}) as stage:
        with pytest.raises(RequestFailed, match="Could not read properties from file lost"):
            stage.herder.create("c", config, None)
        with pytest.raises(RequestFailed, match=r"^org\.apache\.kafka\.common\.config\.ConfigExc"):
            stage.herder.validate("MirrorHeartbeat", config)
        assert stage.herder.connectors() == ()


def test_values_that_expire_restart_the_connector_and_its_tasks() -> None:
    vault = Vault(ttl_ms=20)
    with herding(providers={"vault": vault}) as stage:
        stage.herder.create("c", WITH_SECRET, None)
        eventually(lambda: stage.watch.calls.count("start c") > 1, "begun anew")
        eventually(lambda: "restart tasks c [0, 1]" in stage.watch.calls, "the tasks too")
    with herding(providers={"vault": vault}) as stage:
        stage.herder.create("c", WITH_SECRET | {"config.action.reload": "none"}, None)
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")
        assert len(stage.watch.connectors["c"]) == 1


def test_retired_keys_are_read_as_they_were_meant_and_stored_as_they_were_sent() -> None:
    config = named("c", SOURCE) | {"topics.blacklist": "payments"}
    with herding() as stage:
        stage.herder.create("c", config, None)
        stage.reaches("c", "RUNNING", "RUNNING", "RUNNING")
        assert stage.watch.connector("c").config["topics.exclude"] == "payments"
        assert stage.herder.info("c").config == config


def test_each_part_of_a_value_is_a_secret_too() -> None:
    expanded = Expander({"vault": Vault()}).expand(
        {"url": "x://u:${vault:x:pw}@h", "plain": "abcd"}
    )
    assert expanded.values["url"] == f"x://u:{SECRET}@h"
    assert expanded.secrets == {SECRET, f"x://u:{SECRET}@h"}
    assert SECRET not in repr(expanded)


def test_stored_task_configs_name_their_class_and_keep_placeholders() -> None:
    connector = {"connector.class": "MirrorHeartbeat", "a": "${vault:x:pw}", "b": "plain"}
    stored = stored_tasks(connector, [{**connector, "a": SECRET, "c": "own"}])
    assert stored == [
        {
            **connector,
            "c": "own",
            "task.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatTask",
        }
    ]
