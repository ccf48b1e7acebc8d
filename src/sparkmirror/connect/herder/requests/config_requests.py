"""Requests that write to the config topic: connectors, configs, target states.

Belongs to the herder thread, so that the state cannot change between a check and its write. A
change takes effect when it is read back from the topic, not here. The texts are Connect's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sparkmirror.connect.herder.herder import RawConfig
from sparkmirror.connect.herder.requests.replication_policy_check import policy_difference
from sparkmirror.connect.runtime.threads.herder_thread import MAY_TAKE_EFFECT
from sparkmirror.connect.runtime.threads.tick_stage import TickThreadStage
from sparkmirror.errors import (
    AlreadyExists,
    ClusterTimeout,
    Conflict,
    MirrorError,
    NotFound,
    RequestFailed,
)
from sparkmirror.mirror.connect_topics.connect_configs import (
    ConfigProperties,
    RestartRequest,
    TargetState,
)
from sparkmirror.mirror.connect_topics.java_hash_map import in_hash_map_order
from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)


class ConfigRequests:
    """Checks requests and writes them to the config store."""

    def __init__(self, configs: ConfigBackingStore, tick_stage: TickThreadStage) -> None:
        self._configs = configs
        self._tick_stage = tick_stage

    def create_connector(self, name: str, config: RawConfig, state: TargetState | None) -> None:
        """Write a new connector. Raises AlreadyExists."""
        if self._configs.snapshot().connector_config(name) is not None:
            raise AlreadyExists(f"Connector {name} already exists")
        with self._write_stage("writing connector configuration to Kafka"):
            self._configs.put_connector_config(name, config, state)
        self._warn_about_policy(name, config)

    def put_connector(self, name: str, config: RawConfig) -> bool:
        """Write a connector; return whether it is new."""
        is_new = self._configs.snapshot().connector_config(name) is None
        with self._write_stage("writing connector configuration to Kafka"):
            self._configs.put_connector_config(name, config)
        self._warn_about_policy(name, config)
        return is_new

    def patched_config(self, name: str, patch: RawConfig) -> dict[str, str | None]:
        """Return a connector's config with a patch applied: null removes a key."""
        merged = in_hash_map_order({**self.require_config(name), **patch})
        return {
            key: value for key, value in merged.items() if value is not None or key not in patch
        }

    def delete_connector(self, name: str) -> None:
        """Write that a connector is deleted. Raises NotFound."""
        self.require_config(name)
        with self._write_stage("removing connector configuration from Kafka"):
            self._configs.remove_connector_config(name)

    def set_target_state(self, name: str, state: TargetState) -> None:
        """Write the target state; for STOPPED also an empty set of tasks. Raises NotFound."""
        current = self._configs.snapshot()
        if current.connector_config(name) is None:
            raise NotFound(f"Unknown connector {name}")
        if state is TargetState.STOPPED and not self._is_stopped(name):
            with self._write_stage("writing task configurations to Kafka"):
                self._configs.put_task_configs(name, [])
        with self._write_stage("writing target state to Kafka"):
            self._configs.put_target_state(name, state)

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        """Write the task configs that the connector's worker has generated.

        Raises NotFound, or Conflict if the connector should have no tasks by now.
        """
        self.require_config(name)
        if self._configs.snapshot().target_state(name) is TargetState.STOPPED:
            raise Conflict(f"Connector {name} is stopped, so its tasks do not change")
        with self._write_stage("writing task configurations to Kafka"):
            self._configs.put_task_configs(name, configs)

    def request_restart(self, request: RestartRequest) -> None:
        """Write a restart request."""
        with self._write_stage("writing restart request to Kafka"):
            self._configs.put_restart_request(request)

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Write the log level of a namespace, for every worker."""
        with self._write_stage("writing logger level to Kafka"):
            self._configs.put_logger_level(namespace, level)

    def stored_config(self, name: str) -> ConfigProperties | None:
        """Return a connector's config; None if there is none. Any thread may call."""
        return self._configs.snapshot().connector_config(name)

    def require_config(self, name: str) -> ConfigProperties:
        """Return a connector's config. Raises NotFound."""
        config = self.stored_config(name)
        if config is None:
            raise NotFound(f"Connector {name} not found")
        return config

    def _warn_about_policy(self, name: str, config: RawConfig) -> None:
        current = self._configs.snapshot()
        others = {other: current.connector_config(other) or {} for other in current.connectors()}
        difference = policy_difference(name, config, others)
        if difference is not None:
            log.warning("%s", difference)

    def _is_stopped(self, name: str) -> bool:
        state = self._configs.snapshot()
        return state.target_state(name) is TargetState.STOPPED and state.task_count(name) == 0

    @contextmanager
    def _write_stage(self, description: str) -> Iterator[None]:
        try:
            with self._tick_stage.enter(description):
                yield
        except ClusterTimeout as error:
            text = f"Error {description}: {error}. {MAY_TAKE_EFFECT}"
            raise RequestFailed(text) from error
        except MirrorError as error:
            raise RequestFailed(f"Error {description}: {error}") from error
