"""What a worker knows of its group: the leader, and the owner of every connector and task."""

from __future__ import annotations

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.distributed.leader_requests import LeaderRequests
from sparkmirror.connect.distributed.worker_group_member import WorkerGroupMember
from sparkmirror.errors import NotLeader, NotOwner, RebalanceNeeded


class WorkerGroup:
    """The group of one worker. Any thread may call; no method blocks."""

    def __init__(self, member: WorkerGroupMember, leader_requests: LeaderRequests) -> None:
        self.member = member
        self.leader_requests = leader_requests

    def assignment(self) -> Assignment:
        """Return the last assignment. Raises RebalanceNeeded if there is none."""
        assignment = self.member.assignment()
        if assignment is None:
            raise RebalanceNeeded
        return assignment

    def is_leader(self) -> bool:
        """Return whether this worker leads the group."""
        assignment = self.member.assignment()
        return assignment is not None and assignment.is_leader

    def leader_url(self) -> str:
        """Return the address of the leader, empty if it is this worker. Raises RebalanceNeeded."""
        assignment = self.assignment()
        return "" if assignment.is_leader else assignment.leader.url

    def request_rejoin(self, reason: str) -> None:
        """Let the group divide the connectors and tasks again."""
        self.member.request_rejoin(reason)

    def require_leader(self) -> None:
        """Raise NotLeader if another worker leads, RebalanceNeeded if that is not known."""
        url = self.leader_url()
        if url:
            raise NotLeader(url)

    def require_connector_owner(self, name: str) -> None:
        """Raise NotOwner if another worker runs the connector, RebalanceNeeded if none does."""
        assignment = self.assignment()
        if name not in assignment.own_share.connectors:
            owner = assignment.owner_of_connector(name)
            raise RebalanceNeeded if owner is None else NotOwner(owner.url)

    def require_task_owner(self, task: ConnectorTaskId) -> None:
        """Raise NotOwner if another worker runs the task, RebalanceNeeded if none does."""
        assignment = self.assignment()
        if task not in assignment.own_share.tasks:
            owner = assignment.owner_of_task(task)
            raise RebalanceNeeded if owner is None else NotOwner(owner.url)
