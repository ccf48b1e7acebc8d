"""Who runs what, from one rebalance of a worker group to the next. Pure values.

Every member gets the whole table, so every worker knows the owner of every connector and task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.connect.connector_task_id import ConnectorTaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberShare:
    """The connectors and tasks that one member runs."""

    worker_id: str
    url: str
    connectors: frozenset[str] = frozenset()
    tasks: frozenset[ConnectorTaskId] = frozenset()

    def task_numbers(self, connector: str) -> frozenset[int]:
        """Return the numbers of the connector's tasks in this share."""
        return frozenset(task.task for task in self.tasks if task.connector == connector)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The result of one rebalance, as one member gets it (Connect's ExtendedAssignment)."""

    generation: int
    """Grows with every rebalance, also if all workers were away in between."""
    member_id: str
    """The member that got this."""
    leader_id: str
    config_offset: int
    """The offset of the config topic that the leader has read. A member reads up to it first."""
    shares: Mapping[str, MemberShare]
    """What each member runs, by member id. Members that wait for their share are included."""
    task_counts: Mapping[str, int] = field(default_factory=dict)
    """How many tasks each connector has by the config that the leader has read."""
    revoked_connectors: frozenset[str] = frozenset()
    """Connectors that this member must stop before it joins again."""
    revoked_tasks: frozenset[ConnectorTaskId] = frozenset()
    """Tasks that this member must stop before it joins again."""
    delay_ms: int = 0
    """After which time the member joins again, because the work of a lost member is held until
    then; 0 if none is."""

    def __post_init__(self) -> None:
        assert self.member_id in self.shares, "a member has a share, empty or not"
        assert self.leader_id in self.shares, "the leader is a member"

    @property
    def is_leader(self) -> bool:
        """Whether this member leads the group."""
        return self.member_id == self.leader_id

    @property
    def leader(self) -> MemberShare:
        """The share of the leader."""
        return self.shares[self.leader_id]

    @property
    def own_share(self) -> MemberShare:
        """The share of this member."""
        return self.shares[self.member_id]

    @property
    def has_revocations(self) -> bool:
        """Whether this member must stop something and join again."""
        return bool(self.revoked_connectors or self.revoked_tasks)

    @property
    def is_round_expected(self) -> bool:
        """Whether another round follows at once: members stop tasks that others will get."""
        return not self.delay_ms and bool(self.unowned_tasks())

    def unowned_tasks(self) -> frozenset[ConnectorTaskId]:
        """Return the tasks that no member runs after this round."""
        owned = {task for share in self.shares.values() for task in share.tasks}
        return frozenset(
            task
            for name, count in self.task_counts.items()
            for number in range(count)
            if (task := ConnectorTaskId(connector=name, task=number)) not in owned
        )

    def has_owner(self, connector: str, task: int | None) -> bool:
        """Return whether a member runs a task, or without one the connector."""
        if task is None:
            return self.owner_of_connector(connector) is not None
        return self.owner_of_task(ConnectorTaskId(connector=connector, task=task)) is not None

    def owner_of_connector(self, name: str) -> MemberShare | None:
        """Return the member that runs a connector; None while none does."""
        return next((share for share in self.shares.values() if name in share.connectors), None)

    def owner_of_task(self, task: ConnectorTaskId) -> MemberShare | None:
        """Return the member that runs a task; None while none does."""
        return next((share for share in self.shares.values() if task in share.tasks), None)
