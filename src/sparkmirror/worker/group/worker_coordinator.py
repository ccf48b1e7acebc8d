"""This worker's membership in the Kafka group of its `group.id`.

    join      describe the group ──▶ a Java worker is a member: wait until it leaves, and say so
                                 ├─▶ others run tasks: wait until this worker is ready for some
                                 └─▶ JoinGroup with what this worker runs
    leader    divides connectors and tasks among the members, SyncGroup
    running   a heartbeat twice a second; a rebalance or a changed config: join again
    revoked   stop what goes to other workers while heartbeats go on, then join again
    lost      the session is over: with other members stop everything, then join as a new member;
              without any go on, because no worker has taken over
    refused   a right to the group is missing: the worker runs everything, with a warning, and joins
              when it can

The coordinator being unreachable changes nothing: tasks go on. A process that was killed stays a
member until its session times out; its successor on the same computer takes over its member id,
because both have the same client id (`persistent_client_id`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.connect.distributed.assignment import Assignment
from sparkmirror.connect.distributed.connect_protocol import decode_assignment, encode_state
from sparkmirror.connect.distributed.rebalance_times import RebalanceTimes
from sparkmirror.connect.distributed.sole_member import sole_assignment
from sparkmirror.connect.distributed.worker_group_member import WorkerRebalanceListener
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState
from sparkmirror.errors import (
    CallCancelled,
    ClusterError,
    ConfigError,
    LeadershipLost,
    NewerWorker,
    RecordError,
)
from sparkmirror.logging_context import ContextThread
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.group_membership import JOIN_GROUP, NEW_MEMBER, JoinedGroup
from sparkmirror.worker.group import conflicting_members
from sparkmirror.worker.group.group_requests import LEAVE_TIMEOUT_S, GroupRequests
from sparkmirror.worker.group.group_settings import WorkerGroupSettings
from sparkmirror.worker.group.leader_assignments import LeaderAssignments
from sparkmirror.worker.group.membership_problem import MembershipProblem
from sparkmirror.worker.group.spark_prestart import SparkPrestart

log = logging.getLogger(__name__)

CHECK_INTERVAL_S = 1.0
"""How often a worker that is refused tries again."""
ROUND_HEARTBEAT_S = 0.1
"""How often a worker that expects the next round sends a heartbeat: tasks stand still meanwhile."""
ROUND_S = 5.0
"""For how long a worker expects it."""
_EXPIRED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class WorkerCoordinator:
    """Implements `connect.distributed.WorkerGroupMember`. A thread joins and sends heartbeats."""

    def __init__(
        self,
        settings: WorkerGroupSettings,
        access: ClusterAccess,
        client_id: str,
        readiness: SparkPrestart | None = None,
    ) -> None:
        """`client_id` belongs to this process and to those before it in the same place.

        `readiness` delays the first join of a group with other members.
        """
        self.rebalances = RebalanceTimes()
        self._readiness = readiness
        self._settings = settings
        self._access = access
        self._client_id = client_id
        self._leader = LeaderAssignments(settings.max_delay_ms, is_exclusive=settings.is_exclusive)
        self._membership_problem = MembershipProblem(settings.group_id)
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._router: Router | None = None
        self._is_reachable = True
        self._assignment: Assignment | None = None
        self._valid_until = 0.0
        self._is_rejoin_requested = False
        self._is_joining = False
        # The member's thread owns the following attributes.
        self._joined: JoinedGroup | None = None
        self._member_id = NEW_MEMBER
        self._must_join = True
        self._is_expired = False
        """Whether the session is over, and other workers may have taken over."""
        self._rejoin_at = float("inf")
        """When the work of a lost member is held no longer."""
        self._revocation: threading.Thread | None = None
        self._pause_s = 0.0
        self._round_expected_until = 0.0

    # -- WorkerGroupMember -----------------------------------------------------------------------

    def start(
        self,
        listener: WorkerRebalanceListener,
        get_state: Callable[[], WorkerState],
        get_configured: Callable[[int], ConfiguredWork],
    ) -> None:
        """Join the group in a thread."""
        self._listener = listener
        self._get_state = get_state
        self._get_configured = get_configured
        self._thread = ContextThread(target=self._run, name=f"group-{self._group_id}")
        self._thread.start()

    def request_rejoin(self, reason: str) -> None:
        """Join again soon."""
        log.debug("Group %s: the worker joins again: %s", self._group_id, reason)
        self._is_rejoin_requested = True
        self._wake.set()

    def leave(self) -> None:
        """Leave the group, so that other workers take over at once."""
        self._stopping.set()
        self._wake.set()
        if self._router is not None and not self._is_reachable:
            self._router.cancel()
        if self._thread is None:
            return
        self._thread.join(LEAVE_TIMEOUT_S)
        if self._thread.is_alive() and self._is_reachable and self._member_id:
            self._leave_while_joining()

    def assignment(self) -> Assignment | None:
        """Return the last assignment; None before the first, and after the membership was lost."""
        return self._assignment

    def problem(self) -> str:
        """Return which other worker this one waits for; empty if for none."""
        return self._membership_problem.problem

    def warning(self) -> str:
        """Return why this worker would not notice another one; empty if it would."""
        return self._membership_problem.warning

    def valid_until(self) -> float:
        """Return until when no other worker gets this one's share, by the monotonic clock."""
        if self._is_joining and self._assignment is not None:
            return max(self._valid_until, time.monotonic() + self._session_s / 2)
        return self._valid_until

    # -- the member's thread ---------------------------------------------------------------------

    @property
    def _group_id(self) -> str:
        return self._settings.group_id

    @property
    def _session_s(self) -> float:
        return self._settings.session_timeout_ms / 1000

    def _run(self) -> None:
        router = self._router = self._access.new_router(self._client_id)
        router.on_retry = self._on_retry
        requests = self._requests(router)
        try:
            self._stay(requests)
        except CallCancelled:
            return  # by `leave`: the cluster is down
        except (ConfigError, LeadershipLost, NewerWorker, RecordError) as error:
            self._leave(requests)
            self._listener.on_failed(error)
        finally:
            router.close()

    def _requests(self, router: Router) -> GroupRequests:
        return GroupRequests(router, self._settings, self._access.cluster)

    def _stay(self, requests: GroupRequests) -> None:
        """Be a member until `leave`. Raises what ends the worker."""
        while not self._stopping.is_set():
            self._pause_s = self._heartbeat_interval_s()
            try:
                if self._is_join_due():
                    self._join(requests)
                elif self._joined is not None:
                    self._send_heartbeat(requests, self._joined)
            except CallCancelled:
                raise
            except ClusterError as error:
                self._on_cluster_error(error)
            if not self._is_join_due() or self._pause_s > 0:
                self._wake.wait(min(self._pause_s, max(self._rejoin_at - time.monotonic(), 0.0)))
                self._wake.clear()
        self._leave(requests)

    def _heartbeat_interval_s(self) -> float:
        interval_s = self._settings.heartbeat_interval_ms / 1000
        is_expected = time.monotonic() < self._round_expected_until
        return min(interval_s, ROUND_HEARTBEAT_S) if is_expected else interval_s

    def _is_join_due(self) -> bool:
        is_due = self._must_join or self._is_rejoin_requested or time.monotonic() > self._rejoin_at
        return is_due and self._revocation is None

    def _on_retry(self, error: ClusterError) -> None:
        self._is_reachable = False

    def _on_cluster_error(self, error: ClusterError) -> None:
        """Try again after a pause. Without the right to the group, run everything meanwhile."""
        self._pause_s = CHECK_INTERVAL_S
        self._must_join = self._must_join or self._joined is None
        if error.retriable:
            if self._assignment is None:
                self._membership_problem.problem = str(error)
            return
        self._must_join = True
        self._membership_problem.warn(conflicting_members.unnoticed_text(self._group_id, error))
        before = self._assignment
        if before is None or (self._is_rejoin_requested and len(before.shares) == 1):
            self._is_rejoin_requested = False
            self._assignment = sole_assignment(self._get_state(), self._get_configured(-1), before)
            self._valid_until = float("inf")
            self._membership_problem.problem = ""
            self._listener.on_assigned(self._assignment)

    # -- join ------------------------------------------------------------------------------------

    def _join(self, requests: GroupRequests) -> None:
        """Join or join again, and run what the leader assigns."""
        if self._member_id == NEW_MEMBER and not self._find_place(requests):
            return
        self._must_join = self._is_rejoin_requested = False
        self._rejoin_at = float("inf")
        self._is_joining = True
        self.rebalances.on_began()
        try:
            outcome = self._join_and_sync(requests)
        except ClusterError:
            self._must_join = True
            self.rebalances.on_abandoned()
            raise
        finally:
            # Drivers got this time while the worker joined: the membership must not end before.
            self._valid_until = self.valid_until()
            self._is_joining = False
        self._is_reachable = True
        if isinstance(outcome, ErrorCode):
            self.rebalances.on_abandoned()
            self._on_refusal(requests, outcome)
            return
        assert self._joined is not None
        assignment = decode_assignment(outcome, self._joined.member_id)
        if assignment is None or (self._settings.is_exclusive and not assignment.is_leader):
            self.rebalances.on_abandoned()
            self._give_way(requests)
            return
        self._membership_problem.warn(self._address_warning(assignment))
        self._membership_problem.problem = ""
        if not assignment.is_leader:
            self._leader.follow(assignment)
        self._run_share(assignment)

    def _join_and_sync(self, requests: GroupRequests) -> bytes | ErrorCode:
        state = encode_state(self._get_state())
        with self.rebalances.measure_join():
            joined = requests.join(self._member_id, state, self._set_member_id)
        if isinstance(joined, ErrorCode):
            return joined
        self._joined, self._member_id = joined, joined.member_id
        sent = time.monotonic()
        assignments = (
            self._leader.assign(joined, self._get_configured, self._assignment)
            if joined.is_leader
            else {}
        )
        with self.rebalances.measure_sync():
            received = requests.sync(joined, assignments)
        if not isinstance(received, ErrorCode):
            self._valid_until = sent + self._session_s
        return received

    def _set_member_id(self, member_id: str) -> None:
        self._member_id = member_id

    def _run_share(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._round_expected_until = next_round_expected_until(assignment, time.monotonic())
        self._pause_s = self._heartbeat_interval_s()
        self.rebalances.on_completed()
        role = "leader" if assignment.is_leader else f"follower of {assignment.leader.worker_id}"
        log.info(
            "Group %s: generation %d with %d workers; this one is the %s and runs %d connectors and"
            " %d tasks",
            self._group_id, assignment.generation, len(assignment.shares), role,
            len(assignment.own_share.connectors), len(assignment.own_share.tasks),
        )  # fmt: skip
        self._listener.on_assigned(assignment)
        if self._readiness is not None:
            self._readiness.on_assigned(len(assignment.shares))
        if assignment.delay_ms:
            self._rejoin_at = time.monotonic() + assignment.delay_ms / 1000
        if assignment.has_revocations:
            self._revocation = ContextThread(
                target=self._revoke, args=[assignment], name=f"revoke-{self._group_id}"
            )
            self._revocation.start()

    def _revoke(self, assignment: Assignment) -> None:
        """Wait until everything revoked has stopped, then join again. Has a thread of its own."""
        try:
            self._listener.on_revoked(assignment.revoked_connectors, assignment.revoked_tasks)
        finally:
            self._must_join, self._revocation = True, None
            self._wake.set()

    def _find_place(self, requests: GroupRequests) -> bool:
        """Whether this worker may join as a new member. Takes over the id of a killed process."""
        found = requests.describe()
        self._is_reachable = True
        conflicting_members.check_protocol_type(self._group_id, found)
        own, others = conflicting_members.split_members(found, self._client_id)
        refused = others and (
            self._settings.is_exclusive or conflicting_members.has_java_worker(found)
        )
        text = conflicting_members.refused_text(self._access.cluster, self._group_id, found, others)
        if self._is_expired:
            self._is_expired = False
            if refused and self._settings.is_exclusive:
                raise LeadershipLost(text)
            if others:
                self._lose_share()
        if refused:
            self._wait_for_others(text)
            return False
        if others and self._readiness is not None and not self._is_ready(self._readiness):
            self._wait_for_spark(requests, own, self._readiness.starting_text())
            return False
        if own:
            self._member_id = own[0]
        if own[1:]:
            requests.remove(own[1:])
        return True

    def _is_ready(self, readiness: SparkPrestart) -> bool:
        return readiness.is_ready() and self._listener.is_prepared()

    def _wait_for_others(self, problem: str) -> None:
        self._membership_problem.wait_for(problem)
        self._must_join, self._pause_s = True, CHECK_INTERVAL_S

    def _wait_for_spark(self, requests: GroupRequests, own: Sequence[str], problem: str) -> None:
        """Look again soon. Others take over at once what a killed process here has left."""
        self._membership_problem.wait_for(problem, logging.INFO)
        self._must_join = True
        if own:
            requests.remove(own)

    def _give_way(self, requests: GroupRequests) -> None:
        """Leave a group that another worker has for itself."""
        found = requests.describe()
        _, others = conflicting_members.split_members(found, self._client_id)
        text = (
            conflicting_members.refused_text(self._access.cluster, self._group_id, found, others)
            if self._settings.is_exclusive
            else conflicting_members.older_worker_text(self._access.cluster, self._group_id, others)
        )
        self._leave(requests)
        if self._assignment is not None:
            raise LeadershipLost(text)
        self._wait_for_others(text)

    def _on_refusal(self, requests: GroupRequests, code: ErrorCode) -> None:
        """Decide about a code of JoinGroup or SyncGroup."""
        self._must_join = True
        if code in _EXPIRED:
            self._expire()
        elif code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            self._expire()  # its members, if any are left, are Java workers
            self._pause_s = CHECK_INTERVAL_S
        elif code is not ErrorCode.REBALANCE_IN_PROGRESS:
            requests.check_right(JOIN_GROUP.name, code)
            log.info("Group %s: the worker cannot join yet: %s", self._group_id, code.name)
            self._pause_s = CHECK_INTERVAL_S

    # -- heartbeats ------------------------------------------------------------------------------

    def _send_heartbeat(self, requests: GroupRequests, joined: JoinedGroup) -> None:
        sent = time.monotonic()
        with self.rebalances.measure_heartbeat():
            code = requests.send_heartbeat(joined)
        self._is_reachable = True
        if code in _EXPIRED:
            self._expire()
            return
        self._valid_until = sent + self._session_s
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._must_join = True
            self._pause_s = self._pause_s if self._revocation is not None else 0.0

    def _expire(self) -> None:
        """Join as a new member, after a look at who else is there."""
        log.info("Group %s: the session of this worker is over", self._group_id)
        self._joined, self._member_id = None, NEW_MEMBER
        self._must_join, self._pause_s = True, 0.0
        self._is_expired = self._assignment is not None

    def _lose_share(self) -> None:
        """Stop everything: other workers may have it by now."""
        revocation = self._revocation
        if revocation is not None:
            revocation.join()
        self._assignment = None
        self._valid_until = 0.0
        self._listener.on_lost()

    # -- leave -----------------------------------------------------------------------------------

    def _leave(self, requests: GroupRequests) -> None:
        member_id, self._joined, self._member_id = self._member_id, None, NEW_MEMBER
        if member_id != NEW_MEMBER:
            requests.leave(member_id)

    def _leave_while_joining(self) -> None:
        """Leave through another connection: the member's thread waits for other members."""
        router = self._access.new_router(self._client_id)
        try:
            self._requests(router).leave(self._member_id)
        finally:
            router.close()

    def _address_warning(self, assignment: Assignment) -> str:
        """Return a warning if another member has this worker's address."""
        own = assignment.own_share.worker_id
        count = sum(share.worker_id == own for share in assignment.shares.values())
        return conflicting_members.same_address_text(self._group_id, own) if count > 1 else ""


def next_round_expected_until(assignment: Assignment, now: float) -> float:
    """Return until when a member expects to join again soon; 0 if it does not."""
    return now + ROUND_S if assignment.is_round_expected else 0.0
