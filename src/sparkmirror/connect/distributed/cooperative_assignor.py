"""Divides connectors and tasks among the members of a worker group. Pure.

    members join with what they run ──▶ kept: what the config topic still has
                                        revoked: deleted, run twice, or more than a fair part
                                        assigned: what no member runs
    a member with revocations stops them and joins again ──▶ the next round assigns them

A member keeps what it runs unless another one would have too little. So a move takes two rounds,
and no connector or task runs on two members. Connectors and tasks are each divided by their number,
as in Connect. What a lost member ran can be held for it during a delay.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.connect.distributed.assignment import MemberShare
from sparkmirror.connect.distributed.worker_state import ConfiguredWork, WorkerState

Work = TypeVar("Work", str, ConnectorTaskId)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostSince:
    """Which worker ran a connector or task before it was lost, and when that was noticed."""

    worker_id: str
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorMemory:
    """What the leader remembers from the last round."""

    shares: tuple[MemberShare, ...] = ()
    """What each worker ran after the last round."""
    lost: Mapping[str | ConnectorTaskId, LostSince] = field(default_factory=dict)
    """What is held for a lost worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorResult:
    """One round: what each member runs, what it must stop, and when the next round is due."""

    shares: Mapping[str, MemberShare]
    revoked_connectors: Mapping[str, frozenset[str]]
    revoked_tasks: Mapping[str, frozenset[ConnectorTaskId]]
    delay_ms: int
    memory: AssignorMemory

    @property
    def has_revocations(self) -> bool:
        """Whether another round follows at once."""
        return any(self.revoked_connectors.values()) or any(self.revoked_tasks.values())


class IncrementalCooperativeAssignor:
    """Connect's name for the rule. Holds only its delay."""

    def __init__(self, max_delay_ms: int) -> None:
        """`max_delay_ms`: how long the work of a lost member is held for it."""
        self._max_delay_ms = max_delay_ms

    def assign(
        self,
        members: Mapping[str, WorkerState],
        configured: ConfiguredWork,
        memory: AssignorMemory,
        now_ms: int,
    ) -> AssignorResult:
        """Return the next round for these members, by member id. There is at least one."""
        assert members, "a group without members has no round"
        lost = self._find_lost(members, configured, memory, now_ms)
        held = {work for work, loss in lost.items() if now_ms - loss.since_ms < self._max_delay_ms}
        wanted_by = _former_owners(members, memory)
        connectors = _Division[str](
            {member: state.connectors for member, state in members.items()},
            frozenset(configured.task_counts),
            _member_order(members),
        )
        connectors.divide(held, wanted_by, _no_sibling)
        tasks = configured.tasks()
        undivided = frozenset(task for task in tasks if task.connector in configured.undivided)
        following = _Division[ConnectorTaskId](
            {member: state.tasks & undivided for member, state in members.items()},
            undivided,
            _member_order(members),
        )
        following.follow(connectors.owners(), lambda task: task.connector)
        divided = _Division[ConnectorTaskId](
            {member: state.tasks - undivided for member, state in members.items()},
            tasks - undivided,
            _member_order(members),
        )
        divided.divide(held, wanted_by, lambda task: task.connector)
        shares = {
            member: MemberShare(
                worker_id=state.worker_id,
                url=state.url,
                connectors=frozenset(connectors.kept[member]),
                tasks=frozenset(following.kept[member] | divided.kept[member]),
            )
            for member, state in members.items()
        }
        return AssignorResult(
            shares=shares,
            revoked_connectors={one: frozenset(connectors.revoked[one]) for one in members},
            revoked_tasks={
                one: frozenset(following.revoked[one] | divided.revoked[one]) for one in members
            },
            delay_ms=min(
                (self._max_delay_ms - (now_ms - lost[work].since_ms) for work in held), default=0
            ),
            memory=AssignorMemory(
                shares=tuple(shares.values()),
                lost={work: loss for work, loss in lost.items() if work in held},
            ),
        )

    def _find_lost(
        self,
        members: Mapping[str, WorkerState],
        configured: ConfiguredWork,
        memory: AssignorMemory,
        now_ms: int,
    ) -> dict[str | ConnectorTaskId, LostSince]:
        """Return the configured work whose last worker is not a member and that none runs."""
        present = {state.worker_id for state in members.values()}
        lost = dict(memory.lost)
        for share in memory.shares:
            for work in _works(share):
                lost[work] = LostSince(worker_id=share.worker_id, since_ms=now_ms)
        exists = set(configured.task_counts) | configured.tasks()
        runs = {work for one in members.values() for work in (*one.connectors, *one.tasks)}
        return {
            work: loss
            for work, loss in lost.items()
            if loss.worker_id not in present and work in exists and work not in runs
        }


class _Division(Generic[Work]):
    """How work of one kind is divided: what each member keeps or gets, and what it must stop."""

    def __init__(
        self, runs: Mapping[str, frozenset[Work]], configured: frozenset[Work], order: list[str]
    ) -> None:
        """`runs` is what the members run. Work that is deleted or runs twice is revoked at once."""
        self._order = order
        self._configured: frozenset[Work] = configured
        counts = Counter(work for of_member in runs.values() for work in of_member)
        self._claimed: set[Work] = set(counts)
        self.kept: dict[str, set[Work]] = {
            member: {work for work in of_member if work in configured and counts[work] == 1}
            for member, of_member in runs.items()
        }
        self.revoked: dict[str, set[Work]] = {
            member: set(of_member) - self.kept[member] for member, of_member in runs.items()
        }

    def owners(self) -> dict[Work, str]:
        """Return the member that keeps or gets each."""
        return {work: member for member, works in self.kept.items() for work in works}

    def divide(
        self,
        held: AbstractSet[object],
        wanted_by: Mapping[object, str],
        sibling: Callable[[Work], str],
    ) -> None:
        """Give the members equal parts; keep the siblings among the work apart if possible.

        While work is held for a lost member nothing moves. `wanted_by` is the member that ran
        something before it restarted: it gets it back.
        """
        free = self._configured - self._claimed - held
        if self._configured.isdisjoint(held):
            for member, limit in self._limits().items():
                self._revoke_above(member, limit, sibling)
        limits = self._limits()
        for work in sorted(free):
            former = wanted_by.get(work)
            if former is not None and len(self.kept[former]) < limits[former]:
                self.kept[former].add(work)
                free -= {work}
        siblings = {member: Counter(map(sibling, works)) for member, works in self.kept.items()}
        for work in sorted(free):
            member = min(
                self._order,
                key=lambda one: (len(self.kept[one]), siblings[one][sibling(work)]),
            )
            self.kept[member].add(work)
            siblings[member][sibling(work)] += 1

    def follow(self, owners: Mapping[str, str], leader_of: Callable[[Work], str]) -> None:
        """Give each to the member that owns what it follows; revoke it elsewhere."""
        for member, works in self.kept.items():
            misplaced = {work for work in works if owners.get(leader_of(work)) != member}
            works -= misplaced
            self.revoked[member] |= misplaced
        for work in self._configured - self._claimed:
            owner = owners.get(leader_of(work))
            if owner is not None:
                self.kept[owner].add(work)

    def _limits(self) -> dict[str, int]:
        """Return how many each member may have. Those that have most get the remainder."""
        least, remainder = divmod(len(self._configured), len(self._order))
        busiest = sorted(self._order, key=lambda member: -len(self.kept[member]))
        return {member: least + (position < remainder) for position, member in enumerate(busiest)}

    def _revoke_above(self, member: str, limit: int, sibling: Callable[[Work], str]) -> None:
        """Revoke what is too much, first of the siblings that most are here of."""
        works = self.kept[member]
        here: defaultdict[str, list[Work]] = defaultdict(list)
        for work in sorted(works):
            here[sibling(work)].append(work)
        moved = Counter[str]()
        while len(works) > limit:
            name = max(here, key=lambda one: (len(here[one]), -moved[one], one))
            work = here[name].pop()
            works.remove(work)
            self.revoked[member].add(work)
            moved[name] += 1


def _no_sibling(_work: str) -> str:
    return ""


def _member_order(members: Mapping[str, WorkerState]) -> list[str]:
    """Return the member ids by worker id, so that the same group gives the same result."""
    return sorted(members, key=lambda member: (members[member].worker_id, member))


def _works(share: MemberShare) -> list[str | ConnectorTaskId]:
    return [*share.connectors, *share.tasks]


def _former_owners(members: Mapping[str, WorkerState], memory: AssignorMemory) -> dict[object, str]:
    """Return which present member ran something before it was lost or restarted."""
    member_ids = {state.worker_id: member for member, state in members.items()}
    former: dict[object, str] = {
        work: loss.worker_id for work, loss in memory.lost.items() if loss.worker_id in member_ids
    }
    for share in memory.shares:
        for work in _works(share):
            former[work] = share.worker_id
    return {work: member_ids[one] for work, one in former.items() if one in member_ids}
