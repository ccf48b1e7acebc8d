"""One cluster as a connector gets hold of it: made at once, connected when first needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.admin import Admin, ClusterView
from sparkmirror.cluster.topic_configs import TopicConfigs
from sparkmirror.cluster.topics import NewTopic, Topic
from sparkmirror.errors import ClusterError
from sparkmirror.wire.routing import Router


class TopicsAdmin(Protocol):
    """What a connector asks of topics: `cluster.admin` answers it."""

    def describe_cluster(self) -> ClusterView: ...
    def topics(self, names: Collection[str] | None = None) -> dict[str, Topic]: ...
    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, ClusterError]: ...
    def grow_topics(self, partitions: Mapping[str, int]) -> dict[str, ClusterError]: ...
    def topic_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """An admin and a router. Belongs to one thread at a time."""

    alias: str
    admin: TopicsAdmin
    router: Router

    @classmethod
    def on(cls, access: Access, timeout_s: float, client_id: str = "sparkmirror") -> Self:
        """Get hold of a cluster. A single call takes no longer than `timeout_s`."""
        return cls(
            alias=access.cluster,
            admin=Admin(access, timeout_s),
            router=access.router(client_id),
        )

    def close(self) -> None:
        """Let go."""
        self.admin.close()
        self.router.close()
