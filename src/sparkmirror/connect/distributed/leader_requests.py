"""What a worker that is not the leader asks of the leader, over its REST API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sparkmirror.errors import RebalanceNeeded
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties


class LeaderRequests(Protocol):
    """Requests to the leader. Any thread may call; a call blocks and raises MirrorError."""

    def put_task_configs(
        self, leader_url: str, connector: str, configs: Sequence[ConfigProperties]
    ) -> None:
        """Let the leader write the task configs of a connector (POST /connectors/{c}/tasks)."""
        ...

    def fence_zombies(self, leader_url: str, connector: str) -> None:
        """Let the leader fence older task producers (PUT /connectors/{c}/fence)."""
        ...


class NoLeaderRequests:
    """The requests of a worker that is always the leader."""

    def put_task_configs(
        self, leader_url: str, connector: str, configs: Sequence[ConfigProperties]
    ) -> None:
        """Raise RebalanceNeeded: this worker has no leader beside itself."""
        raise RebalanceNeeded

    def fence_zombies(self, leader_url: str, connector: str) -> None:
        """Raise RebalanceNeeded: this worker has no leader beside itself."""
        raise RebalanceNeeded
