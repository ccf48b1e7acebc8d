"""What a herder needs beside its settings and stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparkmirror.config.secrets.variables import ConfigProvider
from sparkmirror.connect.distributed.leader_requests import LeaderRequests, NoLeaderRequests
from sparkmirror.connect.distributed.sole_member import SoleMember
from sparkmirror.connect.distributed.worker_group_member import WorkerGroupMember
from sparkmirror.connect.herder.herder import RawConfig, ServerInfo
from sparkmirror.connect.herder.log_levels import LogLevels
from sparkmirror.connect.runtime.connector_registry import ConnectorRegistry
from sparkmirror.connect.runtime.fencing.zombie_fencing import ProducerFencer
from sparkmirror.connect.runtime.run_context import (
    TasksEndedListener,
    WorkerValuesReader,
    ignore_ended_tasks,
)
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderDependencies:
    """Built by `worker`; tests pass small ones."""

    registry: ConnectorRegistry
    get_server_info: Callable[[], ServerInfo]
    """Returns the version, and the id of the cluster that holds the stores if it is known yet."""
    providers: Mapping[str, ConfigProvider] = field(default_factory=dict)
    fencer: ProducerFencer | None = None
    """Required with exactly-once support."""
    log_levels: LogLevels = field(default_factory=LogLevels)
    """One for the process, shared by all its herders."""
    on_tasks_ended: TasksEndedListener = ignore_ended_tasks
    read_worker_values: WorkerValuesReader | None = None
    """None if the worker's file has no placeholders that concern tasks."""
    configured_connectors: Mapping[str, RawConfig] = field(default_factory=dict, repr=False)
    """The connectors that a file configures, by name. Reads get them until the stores are read."""
    get_unconfigured: Callable[[], str] = str
    """Returns which connectors of the file are not configured yet, and why; empty if none."""
    member: WorkerGroupMember = field(default_factory=SoleMember)
    """The worker's membership in its group."""
    leader_requests: LeaderRequests = field(default_factory=NoLeaderRequests)
    get_url: Callable[[], str] = str
    """Returns the address of the worker's REST API, for other workers."""
    is_undivided: Callable[[ConfigProperties], bool] = lambda _config: False
    """Returns whether all tasks of a connector run on the worker that runs the connector."""
