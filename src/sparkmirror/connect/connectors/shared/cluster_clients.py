"""One cluster as a connector gets hold of it: made at once, connected when first needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin, DescribeClusterResult
from sparkmirror.cluster.describe_configs import TopicConfigs
from sparkmirror.cluster.topics import NewTopic, TopicDescription
from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.routing import Router


class TopicAdmin(Protocol):
    """What a connector asks of topics: `cluster.admin` answers it."""

    def describe_cluster(self) -> DescribeClusterResult: ...
    def describe_topics(
        self, names: Collection[str] | None = None
    ) -> dict[str, TopicDescription]: ...
    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, ClusterError]: ...
    def create_partitions(self, partitions: Mapping[str, int]) -> dict[str, ClusterError]: ...
    def describe_configs(
        self, names: Collection[str]
    ) -> dict[str, TopicConfigs | ClusterError]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterClients:
    """An admin and a router. Belongs to one thread at a time."""

    alias: str
    admin: TopicAdmin
    router: Router

    @classmethod
    def create(
        cls, access: ClusterAccess, timeout_s: float, client_id: str = "sparkmirror"
    ) -> Self:
        """Get hold of a cluster. A single call takes no longer than `timeout_s`."""
        return cls(
            alias=access.cluster,
            admin=Admin(access, timeout_s),
            router=access.new_router(client_id),
        )

    def close(self) -> None:
        """Let go."""
        self.admin.close()
        self.router.close()
