"""What a herder answers while the cluster of its topics is down or does not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from sparkmirror.connect.herder import herder_parts, rebalance_listener
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import ConnectorOffset
from sparkmirror.errors import ClusterTimeout, MirrorError, NotFound, RequestFailed, WorkerStarting
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties, TargetState
from sparkmirror.mirror.connect_topics.connect_json import JsonValue
from sparkmirror.mirror.connect_topics.connect_offsets import StoredOffset
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from sparkmirror.store.offset_backing_store import KafkaOffsetBackingStore
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, named_config, poll_until
from tests.support.connect.in_memory_stores import MemoryLog, memory_config_store
from tests.support.connect.unavailable_stores import (
    FrozenConfigs,
    SlowConfigs,
    herder_on,
    started,
)

REFUSED = "backup: b1:9092: connection refused"


def test_reads_do_not_wait_for_a_cluster_that_is_down() -> None:
    class UnreachableConfigs(SlowConfigs):
        def problem(self) -> str:
            return "" if self.may_start.is_set() else "backup: b1:9092: connection refused"

    configs = UnreachableConfigs()
    herder = herder_on(configs, configured={"c": named_config("c", SOURCE_CONFIG)})
    herder.start()
    assert herder.connectors() == ("c",)
    assert herder.connector_info("c").tasks == ()
    assert herder.connector_info("c").type == "source"
    status = herder.connector_status("c")
    assert (status.connector.state, status.tasks) == ("UNASSIGNED", {})
    assert str(status.connector.trace).endswith("backup: b1:9092: connection refused")
    with pytest.raises(NotFound):
        herder.connector_info("d")
    with pytest.raises(WorkerStarting, match="backup: b1:9092: connection refused"):
        herder.pause_connector("c")
    assert herder.health().status == "starting"
    with pytest.raises(WorkerStarting, match="backup: b1:9092: connection refused"):
        herder.connector_offsets("c")  # unknown, and neither none nor 404
    with pytest.raises(NotFound):
        herder.connector_offsets("d")
    configs.may_start.set()
    assert herder.await_started(50)
    assert herder.connector_offsets("c") == []
    herder.shut_down()


def test_the_wait_for_the_start_counts_for_a_write_that_is_not_made_after_its_timeout() -> None:
    configs = SlowConfigs()
    with started(herder_on(configs, has_long_timeout=False)) as herder:
        poll_until(lambda: "reading the config topic" in herder.health().message, "the start")
        with pytest.raises(WorkerStarting, match="is currently reading the config topic"):
            herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        configs.may_start.set()
        assert herder.await_started(50)
        assert herder.connectors() == (), "a change that was answered with an error is not made"


def test_a_write_waits_for_a_start_that_ends_in_time() -> None:
    configs = SlowConfigs()
    with started(herder_on(configs)) as herder, ThreadPoolExecutor() as clients:
        config = named_config("c", SOURCE_CONFIG)
        put = clients.submit(herder.put_connector_config, "c", config)
        poll_until(lambda: "reading the config topic" in herder.health().message, "the start")
        configs.may_start.set()
        assert put.result(50).created


def test_health_answers_while_a_write_has_no_answer_and_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(herder_parts, "BUSY_AFTER_S", 0.0)
    configs = FrozenConfigs()
    with started(herder_on(configs)) as herder, ThreadPoolExecutor() as clients:
        assert herder.await_started(50)
        herder.create_connector("c", named_config("c", SOURCE_CONFIG), TargetState.PAUSED)
        resumed = clients.submit(herder.resume_connector, "c")
        assert configs.is_writing.wait(50)
        health = herder.health()
        assert not resumed.done(), "health does not wait for the herder thread"
        assert health.status == "degraded"
        assert "But The worker is currently writing target state to Kafka, which" in health.message
        assert "Its topics are on backup (b1:9092)." in health.message
        configs.release.set()
        resumed.result(50)
        poll_until(lambda: herder.health().status == "healthy", "healthy")


def test_a_herder_thread_that_hangs_is_unhealthy() -> None:
    configs = FrozenConfigs()
    herder = herder_on(configs, health_timeout_s=0.05)
    with started(herder), ThreadPoolExecutor() as clients:
        assert herder.await_started(50)
        herder.create_connector("c", named_config("c", SOURCE_CONFIG), TargetState.PAUSED)
        clients.submit(herder.resume_connector, "c")
        assert configs.is_writing.wait(50)
        poll_until(lambda: herder.health().status == "unhealthy", "unhealthy")
        assert "currently writing target state to Kafka" in herder.health().message
        configs.release.set()


def test_a_change_whose_write_has_no_answer_may_still_take_effect_and_the_error_says_so() -> None:
    configs = FrozenConfigs()
    with started(herder_on(configs, has_long_timeout=False)) as herder:
        assert herder.await_started(50)
        config = named_config("c", SOURCE_CONFIG)
        poll_until(lambda: is_created(herder, config), "a write within the short timeout")
        message = ""
        while not configs.is_writing.is_set():  # a slow computer may not begin within the timeout
            with pytest.raises(RequestFailed) as failure:
                herder.pause_connector("c")
            message = str(failure.value)
        assert message.startswith("Request timed out. The worker is currently writing target state")
        assert message.endswith(
            "Its topics are on backup (b1:9092). The change may still take effect."
        )
        with pytest.raises(RequestFailed, match=r"The change was not made\.$"):
            herder.stop_connector("c")
        configs.release.set()
        poll_until(lambda: configs.snapshot().target_state("c") is TargetState.PAUSED, "paused")
        assert herder.connector_info("c").name == "c"


def is_created(herder: DistributedHerder, config: Mapping[str, str | None]) -> bool:
    try:
        herder.put_connector_config("c", config)
    except RequestFailed:
        return False
    return True


def test_a_write_that_timed_out_at_the_cluster_may_still_take_effect() -> None:
    class SilentConfigs(KafkaConfigBackingStore):
        def put_target_state(self, name: str, state: TargetState) -> None:
            raise ClusterTimeout("backup", "b1:9092: no answer to Produce")

    with started(herder_on(SilentConfigs(MemoryLog()))) as herder:
        assert herder.await_started(50)
        herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        with pytest.raises(
            RequestFailed,
            match=r"^Error writing target state to Kafka: backup: b1:9092: no answer to Produce\."
            r" The change may still take effect\.$",
        ):
            herder.pause_connector("c")


def test_offsets_are_answered_from_memory_while_their_topic_cannot_be_read() -> None:
    class UnreachableOffsets(KafkaOffsetBackingStore):
        known_problem = ""
        refreshes = 0

        def refresh(self, timeout_s: float = 0.0) -> None:
            self.refreshes += 1
            raise ClusterTimeout("backup", f"no answer within {timeout_s:.0f} s")

        def problem(self) -> str:
            return self.known_problem

    partition: dict[str, JsonValue] = {"cluster": "source", "partition": 0, "topic": "orders"}
    stored = StoredOffset(connector="c", partition=partition, offset={"offset": 3})
    offsets = UnreachableOffsets(MemoryLog([stored.encode()]))
    with started(herder_on(memory_config_store(), offsets=offsets)) as herder:
        assert herder.await_started(50)
        herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        expected = [ConnectorOffset(partition=partition, offset={"offset": 3})]
        assert herder.connector_offsets("c") == expected
        assert offsets.refreshes == 1
        offsets.known_problem = REFUSED
        assert herder.connector_offsets("c") == expected
        assert offsets.refreshes == 1, "a cluster that is known to be down is not asked"
        with pytest.raises(NotFound):
            herder.connector_offsets("d")


def test_the_write_privileges_are_claimed_again_while_the_cluster_is_not_available(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class UnclaimableConfigs(KafkaConfigBackingStore):
        is_available = False

        def claim_write_privileges(self, timeout_s: float = 0.0) -> None:
            if not self.is_available:
                raise ClusterTimeout("backup", "the coordinator of connect-cluster does not answer")

    monkeypatch.setattr(rebalance_listener, "CLAIM_PAUSE_S", 0.01)
    configs = UnclaimableConfigs(MemoryLog())
    with started(herder_on(configs)) as herder:
        cause = "cannot be claimed, trying again: backup: the coordinator of connect-cluster does"
        poll_until(lambda: cause in herder.health().message, "the cause")
        assert herder.health().status == "starting"
        assert "is currently claiming the write privileges" in herder.health().message
        with pytest.raises(WorkerStarting, match="the coordinator of connect-cluster does not"):
            herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        assert herder.await_stopped(0) is None
        configs.is_available = True
        assert herder.await_started(50)
        poll_until(lambda: herder.health().status == "healthy", "healthy")
    assert caplog.text.count(cause) == 1


def test_a_herder_that_claims_the_write_privileges_can_be_shut_down() -> None:
    class UnclaimableConfigs(KafkaConfigBackingStore):
        def claim_write_privileges(self, timeout_s: float = 0.0) -> None:
            raise ClusterTimeout("backup", "no answer")

    with started(herder_on(UnclaimableConfigs(MemoryLog()))) as herder:
        poll_until(lambda: "no answer" in herder.health().message, "the cause")
    assert herder.await_stopped(0) is None
    assert not herder.await_started(0)


def test_connectors_that_are_not_in_the_config_topic_yet_are_listed_with_what_they_wait_for() -> (
    None
):
    unconfigured = [REFUSED]
    herder = herder_on(
        memory_config_store(),
        configured={name: named_config(name, SOURCE_CONFIG) for name in ("c", "d")},
        get_unconfigured=lambda: " ".join(unconfigured),
    )
    with started(herder):
        assert herder.await_started(50)
        herder.put_connector_config("d", named_config("d", SOURCE_CONFIG))
        assert set(herder.connectors()) == {"c", "d"}
        waiting = herder.connector_status("c").connector
        assert (waiting.state, waiting.trace) == ("UNASSIGNED", REFUSED)
        assert (herder.connector_info("c").tasks, herder.task_configs("c")) == ((), ())
        assert herder.connector_offsets("c") == []
        assert herder.stored_config("c") is None
        unconfigured.clear()
        assert herder.connector_status("c").connector.trace == "The connector has not started yet."
        with pytest.raises(NotFound):
            herder.connector_status("e")


def test_a_worker_that_cannot_reach_its_topics_is_unhealthy_and_names_the_cause() -> None:
    class FailingLaterConfigs(KafkaConfigBackingStore):
        fails = False

        def problem(self) -> str:
            return "backup: b1:9092: connection refused" if self.fails else ""

    configs = FailingLaterConfigs(MemoryLog())
    herder = herder_on(configs)
    herder.start()
    assert herder.await_started(50)
    assert herder.health().status == "healthy"
    configs.fails = True
    health = herder.health()
    assert health.status == "unhealthy"
    assert health.message.endswith("backup: b1:9092: connection refused")
    herder.shut_down()


def test_a_failed_write_names_the_operation_and_the_cause() -> None:
    class FailingConfigs(KafkaConfigBackingStore):
        def put_target_state(self, name: str, state: TargetState) -> None:
            raise MirrorError(f"no broker accepts {name} {state.value}")

    herder = herder_on(FailingConfigs(MemoryLog()))
    herder.start()
    assert herder.await_started(50)
    herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    with pytest.raises(
        RequestFailed, match="^Error writing target state to Kafka: no broker accepts c PAUSED$"
    ):
        herder.pause_connector("c")
    assert herder.health().status == "healthy"
    herder.shut_down()


def test_task_configs_that_cannot_be_written_are_tried_again() -> None:
    class FailingOnceConfigs(KafkaConfigBackingStore):
        failures = 1

        def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
            if self.failures:
                self.failures -= 1
                raise ClusterTimeout("target", "no answer within 30 s")
            super().put_task_configs(name, configs)

    configs = FailingOnceConfigs(MemoryLog())
    herder = herder_on(configs)
    herder.start()
    assert herder.await_started(50)
    herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
    poll_until(lambda: len(herder.task_configs("c")) == 2, "written in the end")
    assert configs.failures == 0
    herder.shut_down()


def test_health_is_starting_until_the_connectors_of_the_file_are_configured() -> None:
    unconfigured = ["Its connectors are not configured yet."]
    herder = herder_on(
        memory_config_store(MemoryLog()), get_unconfigured=lambda: " ".join(unconfigured)
    )
    herder.start()
    try:
        assert herder.await_started(50)
        health = herder.health()
        assert health.status == "starting"
        assert health.message.endswith("Its connectors are not configured yet.")
        unconfigured.clear()
        assert herder.health().status == "healthy"
    finally:
        herder.shut_down()
