"""What other workers of the group may ask of this one, with a signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties


class InternalHerder(Protocol):
    """The herder of one group, for other workers. Any thread may call. Raises RequestError."""

    def verify_internal_request(self, headers: Mapping[str, str], signed: bytes) -> None:
        """Raise the error of a request whose signature of these bytes is missing or invalid."""
        ...

    def put_task_configs(self, name: str, configs: Sequence[ConfigProperties]) -> None:
        """Write the task configs that a connector's owner has generated. Raises NotLeader."""
        ...

    def fence_zombie_source_tasks(self, name: str) -> None:
        """Fence the producers of a connector's older tasks. Raises NotLeader."""
        ...

    def assignment(self) -> Assignment | None:
        """Return who runs what; None if this worker is no member of the group."""
        ...
