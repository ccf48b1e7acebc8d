"""This worker's membership in the Kafka group of its `group.id`. A group has one worker.

    start     describe the group ──▶ another worker is a member: wait until it leaves, and say so
                                 └─▶ none: the worker starts, and a thread joins the group
    running   a heartbeat every few seconds
    lost      another worker leads the group, because this one was suspended: this worker ends
    refused   a right to the group is missing: the worker runs with a warning and joins when it can

The protocol has a name of its own, so Kafka refuses Java workers in the group, and their group
refuses this worker. A process that was killed stays a member until its session times out; its
successor on the same computer removes it, because both have the same client id
(`worker_client_id`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import CallCancelled, ClusterError, ConfigError, LeadershipLost
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode
from sparkmirror.wire.protocol.group_membership import (
    HEARTBEAT,
    JOIN_GROUP,
    NEW_MEMBER,
    GroupMembers,
    GroupProtocol,
    JoinedGroup,
    describe_members,
    join_group,
    leave_group,
    send_heartbeat,
)
from sparkmirror.wire.protocol.response_errors import error_for_code

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "connect"
PROTOCOL = "sparkmirror"
CHECK_INTERVAL_S = 1.0
HEARTBEAT_INTERVAL_S = 3.0
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 6_000
REQUEST_TIMEOUT_S = 15.0
STOP_TIMEOUT_S = 3.0
_EXPIRED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class WorkerGroup:
    """Implements `connect.herder.worker_membership`. `await_turn` blocks; then a thread runs."""

    def __init__(self, group_id: str, access: ClusterAccess, client_id: str) -> None:
        """`client_id` belongs to this process and to those before it in the same place."""
        self._protocol = GroupProtocol(
            group_id=group_id,
            protocol_type=PROTOCOL_TYPE,
            protocol=PROTOCOL,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        )
        self._access = access
        self._client_id = client_id
        self._problem = ""
        self._warning = ""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._router: Router | None = None
        self._is_reachable = True

    def problem(self) -> str:
        """Return which other worker this one waits for; empty if for none."""
        return self._problem

    def warning(self) -> str:
        """Return why this worker would not notice another one; empty if it would."""
        return self._warning

    def await_turn(self, on_lost: Callable[[Exception], None]) -> None:
        """Wait until the group has no other worker; then join it in a thread.

        `on_lost` gets the error if another worker takes over later. Raises ConfigError if
        `group.id` is a group of consumers.
        """
        router = self._router = self._access.new_router(self._client_id)
        try:
            while not self._stopping.is_set() and not self._is_free(router):
                self._stopping.wait(CHECK_INTERVAL_S)
        finally:
            router.close()
        self._problem = ""
        if not self._stopping.is_set():
            self._thread = threading.Thread(
                target=self._run, args=[on_lost], name=f"group-{self._group_id}", daemon=True
            )
            self._thread.start()

    def leave(self) -> None:
        """Leave the group, so that another worker can start at once."""
        self._stopping.set()
        if self._router is not None and not self._is_reachable:
            self._router.cancel()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)

    @property
    def _group_id(self) -> str:
        return self._protocol.group_id

    def _is_free(self, router: Router) -> bool:
        """Whether no other worker is a member. Removes a killed process with this client id."""
        try:
            found = describe_members(router, self._group_id, timeout_s=REQUEST_TIMEOUT_S)
            check_protocol_type(self._group_id, found)
            own, others = split_members(found, self._client_id)
            if own:
                leave_group(router, self._group_id, own, timeout_s=REQUEST_TIMEOUT_S)
        except ClusterError as error:
            if not error.retriable:
                self._warn(error)
                return True
            self._problem, self._is_reachable = str(error), False
            return False
        if others:
            problem = other_worker_text(self._access.cluster, self._group_id, found, others)
            if problem != self._problem:
                log.warning("%s", problem)
            self._problem = problem
        return not others

    def _on_retry(self, error: ClusterError) -> None:
        self._is_reachable = False

    # -- the thread ------------------------------------------------------------------------------

    def _run(self, on_lost: Callable[[Exception], None]) -> None:
        router = self._router = self._access.new_router(self._client_id)
        router.on_retry = self._on_retry
        try:
            self._stay(router)
        except LeadershipLost as error:
            on_lost(error)
        except CallCancelled:
            return  # by `leave`: the cluster is down
        except ClusterError as error:
            log.warning("Group %s: the worker cannot leave: %s", self._group_id, error)
        finally:
            router.close()

    def _stay(self, router: Router) -> None:
        """Join, send heartbeats until `leave`, and leave. Raises LeadershipLost."""
        joined: JoinedGroup | None = None
        must_join = True
        while not self._stopping.is_set():
            try:
                if must_join:
                    joined = self._join(router, joined)
                if joined is None:
                    continue
                code = send_heartbeat(router, self._group_id, joined, timeout_s=REQUEST_TIMEOUT_S)
                self._check_right(HEARTBEAT.name, code)
                self._warn(None)
                if code in _EXPIRED:
                    joined = None
                self._is_reachable = True
                must_join = code in _EXPIRED or code is ErrorCode.REBALANCE_IN_PROGRESS
            except CallCancelled:
                raise
            except ClusterError as error:
                if not error.retriable:
                    self._warn(error)
                    must_join = True
                    self._stopping.wait(HEARTBEAT_INTERVAL_S)
            if not must_join:
                self._stopping.wait(HEARTBEAT_INTERVAL_S)
        if joined is not None:
            leave_group(router, self._group_id, [joined.member_id], timeout_s=STOP_TIMEOUT_S)

    def _join(self, router: Router, joined: JoinedGroup | None) -> JoinedGroup | None:
        """Join or join again; None if the coordinator wants another try."""
        member_id = joined.member_id if joined else NEW_MEMBER
        outcome = join_group(router, self._protocol, member_id, timeout_s=REQUEST_TIMEOUT_S)
        if isinstance(outcome, JoinedGroup) and outcome.is_leader:
            return outcome
        if isinstance(outcome, ErrorCode):
            self._check_right(JOIN_GROUP.name, outcome)
        found = describe_members(router, self._group_id, timeout_s=REQUEST_TIMEOUT_S)
        own, others = split_members(found, self._client_id)
        if isinstance(outcome, JoinedGroup):
            leave_group(router, self._group_id, own, timeout_s=REQUEST_TIMEOUT_S)
        else:
            log.info("Group %s: the worker cannot join yet: %s", self._group_id, outcome)
        if others:
            raise LeadershipLost(
                other_worker_text(self._access.cluster, self._group_id, found, others)
            )
        self._stopping.wait(CHECK_INTERVAL_S)
        return None

    def _check_right(self, api: str, code: ErrorCode) -> None:
        """Raise NotAuthorized if the coordinator answered that a right is missing."""
        if code.action is ErrorAction.NOT_AUTHORIZED:
            raise error_for_code(self._access.cluster, api, code, self._group_id)

    def _warn(self, error: ClusterError | None) -> None:
        """Set or end the warning; log both once."""
        text = unnoticed_text(self._group_id, error) if error else ""
        if text and text != self._warning:
            log.warning("%s", text)
        elif self._warning and not text:
            log.info("Group %s: the worker is a member and notices others", self._group_id)
        self._warning = text


def unnoticed_text(group_id: str, error: ClusterError) -> str:
    """Return the sentence about a worker that the coordinator refuses."""
    return f"a second worker of group {group_id} would not be noticed: {error}"


def check_protocol_type(group_id: str, found: GroupMembers) -> None:
    """Raise ConfigError if the members of a group are not Connect workers."""
    if found.members and found.protocol_type not in ("", PROTOCOL_TYPE):
        raise ConfigError.of(
            "group.id",
            f"group {group_id} has members of type {found.protocol_type}, which are no Connect"
            " workers; choose another group.id",
        )


def split_members(found: GroupMembers, client_id: str) -> tuple[list[str], list[str]]:
    """Return the member ids with this client id, and the other members as `client id at host`."""
    own = [one.member_id for one in found.members if one.client_id == client_id]
    others = [
        f"{one.client_id} at {one.client_host}"
        for one in found.members
        if one.client_id != client_id
    ]
    return own, others


def other_worker_text(cluster: str, group_id: str, found: GroupMembers, others: list[str]) -> str:
    """Return the sentence about other workers of the group."""
    kind = "a worker" if found.protocol in ("", PROTOCOL) else "a Java worker"
    return (
        f"{cluster}: group {group_id} has {kind} already: {', '.join(others)}. A group.id belongs"
        " to one worker: stop the other one, or give this one another group.id and other topics"
    )
