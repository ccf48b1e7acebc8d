"""What the three connectors read from configs, also from recorded ones."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sparkmirror.config.client_configs import ClusterSide
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.heartbeat.heartbeat_config import MirrorHeartbeatConfig
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.topics.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicyConfig,
)
from sparkmirror.mirror.topics.task_assignment import (
    assigned_groups,
    assigned_partitions,
    checkpoint_task_configs,
    heartbeat_task_configs,
    sorted_unique,
    source_task_configs,
)
from sparkmirror.model import SourceAndTarget
from tests.support.golden import golden_lines

BASE = {
    "name": "c",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}


class OnlyPay:
    """An operator's own topic filter."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._wanted = config["pay.topic"]

    def should_replicate_topic(self, topic: str) -> bool:
        return topic == self._wanted


def shouting_policy(config: ReplicationPolicyConfig) -> DefaultReplicationPolicy:
    """An operator's own policy."""
    assert config.source_alias == "A"
    return DefaultReplicationPolicy(separator="!")


def test_defaults_are_mirrormakers() -> None:
    config = MirrorSourceConfig.parse(BASE)
    assert config.shared.flow == SourceAndTarget("A", "target")
    assert config.shared.is_enabled
    assert config.replication_factor == 2
    assert config.refresh_topics_s == config.sync_configs_s == config.sync_acls_s == 600
    assert config.emits_offset_syncs
    assert (config.offset_lag_max, config.offset_syncs_factor) == (100, 3)
    assert config.offset_syncs_side is ClusterSide.SOURCE
    assert config.selection.should_replicate_topic("orders")
    assert not config.selection.should_replicate_topic("mm2-configs.A.internal")
    checkpoint = MirrorCheckpointConfig.parse(BASE)
    assert (checkpoint.emit_checkpoints_s, checkpoint.refresh_groups_s) == (60, 600)
    assert checkpoint.sync_group_offsets_s is None
    assert not checkpoint.group_filter.should_replicate_group("connect-x")
    assert MirrorHeartbeatConfig.parse(BASE).emit_heartbeats_s == 1


@pytest.mark.parametrize(
    "config",
    [{"refresh.topics.enabled": "false"}, {"refresh.topics.interval.seconds": "-1"}],
    ids=["disabled", "negative"],
)
def test_a_job_that_is_disabled_is_never_done(config: dict[str, str]) -> None:
    assert MirrorSourceConfig.parse(BASE | config).refresh_topics_s is None


def test_internal_topics_are_named_by_the_policy() -> None:
    config = BASE | {"target.cluster.alias": "B", "replication.policy.separator": "_"}
    assert MirrorSourceConfig.parse(config).offset_syncs_topic.name == "mm2-offset-syncs_B_internal"
    assert MirrorCheckpointConfig.parse(config).checkpoints_topic.name == "A_checkpoints_internal"
    assert MirrorHeartbeatConfig.parse(config).heartbeats_topic.name == "heartbeats"
    on_target = MirrorSourceConfig.parse(config | {"offset-syncs.topic.location": "target"})
    assert on_target.offset_syncs_topic.name == "mm2-offset-syncs_A_internal"
    assert on_target.offset_syncs_topic.cluster == "B"


def test_the_identity_policy_gets_the_source_alias() -> None:
    config = BASE | {"replication.policy.class": "IdentityReplicationPolicy"}
    policy = MirrorSourceConfig.parse(config).shared.policy
    assert isinstance(policy, IdentityReplicationPolicy)
    assert policy.topic_source("orders") == "A"


def test_operators_can_use_their_own_filters_and_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    here = __name__
    monkeypatch.setenv("SPARKMIRROR_PLUGIN_MODULES", here)
    config = MirrorSourceConfig.parse(
        BASE
        | {
            "topic.filter.class": f"{here}:OnlyPay",
            "pay.topic": "pay",
            "replication.policy.class": f"{here}:shouting_policy",
        }
    )
    assert config.selection.should_replicate_topic("pay")
    assert not config.selection.should_replicate_topic("orders")
    assert config.shared.policy.format_remote_topic("A", "pay") == "A!pay"


def test_a_plug_in_that_cannot_be_loaded_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKMIRROR_PLUGIN_MODULES", "nowhere")
    with pytest.raises(ConfigError, match=r"topic\.filter\.class: nowhere:Filter"):
        MirrorSourceConfig.parse(BASE | {"topic.filter.class": "nowhere:Filter"})


def test_a_module_that_the_operator_does_not_name_is_not_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "module_of_a_rest_user.py").write_text("Filter = dict\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("SPARKMIRROR_PLUGIN_MODULES", raising=False)
    with pytest.raises(ConfigError, match=r"sparkmirror\.plugin\.modules=module_of_a_rest_user"):
        MirrorSourceConfig.parse(BASE | {"topic.filter.class": "module_of_a_rest_user:Filter"})
    assert "module_of_a_rest_user" not in sys.modules


@pytest.mark.parametrize("member", ["Mapping", "json", "BASE"])
def test_what_an_allowed_module_only_imports_is_no_plug_in(
    monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    monkeypatch.setenv("SPARKMIRROR_PLUGIN_MODULES", __name__)
    with pytest.raises(ConfigError, match="is no class or function of a module in"):
        MirrorSourceConfig.parse(BASE | {"topic.filter.class": f"{__name__}:{member}"})


@pytest.mark.parametrize(
    "key",
    [
        "source.consumer.config.providers",
        "consumer.config.providers.x.class",
        "target.admin.config.providers.x.param.allowed.paths",
        "producer.override.config.providers",
    ],
)
def test_a_connector_declares_no_config_providers_for_its_clients(key: str) -> None:
    with pytest.raises(ConfigError, match="declares them in the worker's file") as caught:
        MirrorHeartbeatConfig.parse(BASE | {key: "x"})
    assert [fault.key for fault in caught.value.faults] == [key]


def test_all_config_errors_are_reported_at_once() -> None:
    wrong = {"tasks.max": "none", "offset.lag.max": "x", "replication.factor": "many"}
    with pytest.raises(ConfigError) as caught:
        MirrorSourceConfig.parse(BASE | wrong)
    assert {fault.key for fault in caught.value.faults} == wrong.keys()


def test_task_configs_are_as_recorded() -> None:
    """Which partition went where was chance in the original; how many each got was not."""
    recorded = {
        line["path"]: json.loads(line["body"])
        for line in golden_lines("rest/05-lifecycle-default-policy.jsonl")
        if line["name"] == "get-tasks"
    }
    for path, write in (
        ("/connectors/mm2-msc/tasks", _source_tasks),
        ("/connectors/mm2-cpc/tasks", _checkpoint_tasks),
        ("/connectors/mm2-hbc/tasks", lambda task, _: heartbeat_task_configs(task)),
    ):
        tasks = [dict(one["config"]) for one in recorded[path]]
        for task in tasks:
            del task["task.class"]  # the worker's addition
        connector = {k: v for k, v in tasks[0].items() if not k.startswith("task.")}
        ours = write(connector, tasks)
        assert [_shape(task) for task in ours] == [_shape(task) for task in tasks]


def _source_tasks(
    connector: dict[str, str], recorded: list[dict[str, str]]
) -> Sequence[Mapping[str, str]]:
    partitions = sorted_unique(p for task in recorded for p in assigned_partitions(task))
    return source_task_configs(connector, partitions, tasks_max=2)


def _checkpoint_tasks(
    connector: dict[str, str], recorded: list[dict[str, str]]
) -> Sequence[Mapping[str, str]]:
    groups = sorted_unique(group for task in recorded for group in assigned_groups(task))
    return checkpoint_task_configs(connector, groups, tasks_max=1)


def _shape(task: Mapping[str, str]) -> dict[str, object]:
    """A task config with the lists of assignments replaced by their length."""
    return {
        key: len(value.split(",")) if key.startswith("task.assigned.") else value
        for key, value in task.items()
    }
