"""What `copy` says before and after: the plan, the summary, where it stood, what is stuck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import rich.box
import rich.console
import rich.table
import rich.text

from sparkmirror.cli import figures
from sparkmirror.cli.copy_goal import Blocked
from sparkmirror.cli.copy_legs import Leg, Legs, by_topic
from sparkmirror.cli.copy_meter import Progress
from sparkmirror.cli.copy_plan import CopyPlan, Survey
from sparkmirror.cli.copy_request import CopyRequest
from sparkmirror.copy.delivery import Delivery
from sparkmirror.copy.snapshot import Event
from sparkmirror.mirror.topic_plan import NewRemoteTopic


def show_plan(
    console: rich.console.Console,
    request: CopyRequest,
    survey: Survey,
    plan: CopyPlan,
    legs: Legs,
) -> None:
    """Print what would be done, topic by topic."""
    flow = request.flow
    console.print(
        f"{flow.source} (cluster {survey.source.cluster_id})"
        f" -> {flow.target} (cluster {survey.target.cluster_id})"
    )
    table = _table("topic", "copy", "partitions", "on the target", "begins", "to copy")
    for topic, of_topic in by_topic(legs).items():
        remote = plan.remote_topics[topic]
        _row(
            table,
            topic,
            remote,
            figures.count(len(of_topic)),
            _on_target(plan, remote),
            _begins(request, list(of_topic.values())),
            figures.count(sum(leg.length for leg in of_topic.values())),
        )
    console.print(table)
    for line in (*_losses(request, legs), *_notes(request, plan)):
        console.print(line, soft_wrap=True)


def show_summary(
    console: rich.console.Console, progress: Progress, tasks: int, events: Sequence[Event]
) -> None:
    """Print what was copied, in all and topic by topic."""
    table = _table("topic", "copy", "partitions", "records", "bytes", "lag", "batches by lane")
    for topic in progress.topics:
        _row(
            table,
            topic.topic,
            topic.remote,
            figures.count(topic.partitions),
            figures.count(topic.copied),
            figures.size(topic.bytes),
            figures.count(topic.lag),
            _lanes(topic.lanes),
        )
    console.print(table)
    seconds = max(progress.copying_s, 1.0)  # reports come once a second
    console.print(
        f"Copied {figures.counted(progress.records, 'record')}, {figures.size(progress.bytes)},"
        f" in {figures.duration(progress.elapsed_s)}; in the"
        f" {figures.duration(progress.copying_s)} after Spark had started:"
        f" {figures.per_second(progress.records / seconds)},"
        f" {figures.size_per_second(progress.bytes / seconds)},"
        f" {figures.counted(tasks, 'task')}."
    )
    console.print(f"Events: {_events(events)}.")


def show_standing(console: rich.console.Console, progress: Progress) -> None:
    """Print where each topic stands."""
    table = _table("topic", "position", "lag")
    for topic in progress.topics:
        _row(table, topic.topic, figures.count(topic.position), figures.count(topic.lag))
    console.print(table)


def show_blocked(console: rich.console.Console, blocked: Iterable[Blocked]) -> None:
    """Print which partitions do not move, why, and what to do."""
    blocked = list(blocked)
    for block in blocked:
        how = "halted" if block.is_halted else "held"
        console.print(
            f"{block.partition} is {how}: {block.reason or 'nobody says why'}", soft_wrap=True
        )
    if any(block.is_halted for block in blocked):
        console.print(
            "Decide about what is lost: --on-loss skip goes on with what is there (the lost range"
            " stays on record), --on-loss restart copies the partition from its beginning again.",
            soft_wrap=True,
        )
    if any(not block.is_halted for block in blocked):
        console.print(
            "Put right what is said above, then run the same command: it goes on from there.",
            soft_wrap=True,
        )


def _notes(request: CopyRequest, plan: CopyPlan) -> Iterable[str]:
    positions = f"Positions are kept in {request.offsets_topic.name} on {request.flow.target}"
    if plan.offsets_topic is not None:
        replicas = plan.offsets_topic.replication_factor
        positions += f" (to be created, {figures.counted(replicas, 'replica')})"
    yield f"{positions}, for the connector {request.connector}."
    yield (
        f"{figures.counted(len(plan.partitions), 'partition')},"
        f" {figures.counted(len(plan.tasks), 'task')}."
    )
    if request.delivery is Delivery.EXACTLY_ONCE:
        yield (
            f"Exactly once: read the copies with isolation.level=read_committed; transactional ids"
            f" begin with {request.group_id}-{request.connector}-."
        )
    if plan.left_out:
        yield f"Never copied, as it is internal or came from there: {', '.join(plan.left_out)}."


def _losses(request: CopyRequest, legs: Legs) -> Iterable[str]:
    for partition, leg in legs.items():
        if leg.is_lossy:
            yield (
                f"{partition}: {request.flow.source} no longer holds offsets {leg.first} to"
                f" {leg.source_start - 1}, which were next; --on-loss {request.on_loss} decides."
            )


def _on_target(plan: CopyPlan, remote: str) -> str:
    for new in plan.topics.create:
        if new.name == remote:
            return _new(new)
    for grown in plan.topics.grow:
        if grown.name == remote:
            return f"grows to {figures.counted(grown.partitions, 'partition')}"
    return "is there"


def _new(new: NewRemoteTopic) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in sorted(new.configs.items()))
    replicas = figures.counted(new.replication_factor, "replica")
    return f"to be created: {replicas}" + (f", {settings}" if settings else "")


def _begins(request: CopyRequest, legs: Sequence[Leg]) -> str:
    known = sum(leg.is_known for leg in legs)
    start = "earliest" if request.start is None else str(request.start.at)
    if not known:
        return start
    return "where it stood" if known == len(legs) else f"where it stood, new ones at {start}"


def _lanes(lanes: Mapping[str, int]) -> str:
    most = sorted(lanes.items(), key=lambda lane: (-lane[1], lane[0]))
    return ", ".join(f"{reason} {figures.count(number)}" for reason, number in most) or "-"


def _events(events: Sequence[Event]) -> str:
    kinds = Counter(event.kind for event in events)
    return ", ".join(f"{number} {kind}" for kind, number in kinds.most_common()) or "none"


def _table(*headings: str) -> rich.table.Table:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    numbers = {"partitions", "records", "bytes", "lag", "to copy", "position"}
    for heading in headings:
        justify: rich.console.JustifyMethod = "right" if heading in numbers else "left"
        table.add_column(heading, overflow="fold", justify=justify)
    return table


def _row(table: rich.table.Table, *cells: str) -> None:
    table.add_row(*(rich.text.Text(cell) for cell in cells))
