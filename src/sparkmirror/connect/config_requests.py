"""Requests that change what the config topic says: connectors, their configs, asked-for states.

Belongs to the herder's thread, so that nothing comes between looking and writing. What follows
from a change is done when it is read back from the topic, not here. The texts are Connect's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparkmirror.connect.herding import Config
from sparkmirror.connect.stages import Stages
from sparkmirror.errors import AlreadyExists, LeadershipLost, MirrorError, NotFound, RequestFailed
from sparkmirror.mirror.connect_configs import Properties, RestartRequest, TargetState
from sparkmirror.mirror.java_maps import in_hash_order
from sparkmirror.store.keeping import ConfigStore


class ConfigRequests:
    """Writes to the config store what people ask for."""

    def __init__(self, configs: ConfigStore, stages: Stages) -> None:
        self._configs = configs
        self._stages = stages

    def create(self, name: str, config: Config, state: TargetState | None) -> None:
        """Write a connector that must not be there yet."""
        if self._configs.snapshot().connector(name) is not None:
            raise AlreadyExists(f"Connector {name} already exists")
        with self._writing("writing connector configuration to Kafka"):
            self._configs.put_connector(name, config, state)

    def put(self, name: str, config: Config) -> bool:
        """Write a connector; say whether it is a new one."""
        is_new = self._configs.snapshot().connector(name) is None
        with self._writing("writing connector configuration to Kafka"):
            self._configs.put_connector(name, config)
        return is_new

    def patched(self, name: str, patch: Config) -> dict[str, str | None]:
        """Say what a connector's config becomes with a patch: null takes a key away."""
        merged = in_hash_order({**self.known(name), **patch})
        return {
            key: value for key, value in merged.items() if value is not None or key not in patch
        }

    def remove(self, name: str) -> None:
        """Write that a connector is no more."""
        self.known(name)
        with self._writing("removing connector configuration from Kafka"):
            self._configs.remove_connector(name)

    def ask_for(self, name: str, state: TargetState) -> None:
        """Write the asked-for state. A stopped connector has no tasks."""
        current = self._configs.snapshot()
        if current.connector(name) is None:
            raise NotFound(f"Unknown connector {name}")
        if state is TargetState.STOPPED and not self._is_stopped(name):
            with self._writing("writing task configurations to Kafka"):
                self._configs.put_tasks(name, [])
        with self._writing("writing target state to Kafka"):
            self._configs.put_target_state(name, state)

    def ask_for_restart(self, request: RestartRequest) -> None:
        """Write that a restart was asked for."""
        with self._writing("writing restart request to Kafka"):
            self._configs.put_restart(request)

    def set_level(self, namespace: str, level: str) -> None:
        """Write the log level of a name space, for every worker."""
        with self._writing("writing logger level to Kafka"):
            self._configs.put_logger_level(namespace, level)

    def known(self, name: str) -> Properties:
        """Return a connector's config, or raise NotFound."""
        config = self._configs.snapshot().connector(name)
        if config is None:
            raise NotFound(f"Connector {name} not found")
        return config

    def _is_stopped(self, name: str) -> bool:
        state = self._configs.snapshot()
        return state.target_state(name) is TargetState.STOPPED and state.task_count(name) == 0

    @contextmanager
    def _writing(self, doing: str) -> Iterator[None]:
        try:
            with self._stages.now(doing):
                yield
        except LeadershipLost as error:
            raise RequestFailed(f"Error {doing}: {error}") from error
        except MirrorError as error:
            raise RequestFailed(f"Error {doing}") from error
