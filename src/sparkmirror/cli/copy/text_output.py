"""What `copy` prints before and after: plan, summary, positions, blocked partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import rich.box
import rich.console
import rich.table
import rich.text

from sparkmirror.cli import number_format
from sparkmirror.cli.copy.completion import BlockedPartition
from sparkmirror.cli.copy.plan import ClusterDescriptions, CopyPlan
from sparkmirror.cli.copy.progress_tracker import CopyProgress
from sparkmirror.cli.copy.ranges import PartitionRange, PartitionRanges, by_topic
from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.cli.copy.screen import blocked_line
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.snapshot import CopyEvent
from sparkmirror.mirror.topics.topic_plan import NewRemoteTopic


def show_plan(
    console: rich.console.Console,
    request: CopyRequest,
    descriptions: ClusterDescriptions,
    plan: CopyPlan,
    ranges: PartitionRanges,
) -> None:
    """Print the plan, topic by topic."""
    flow = request.flow
    console.print(
        f"{flow.source} (cluster {descriptions.source.cluster_id})"
        f" -> {flow.target} (cluster {descriptions.target.cluster_id})"
    )
    table = _table("topic", "copy", "partitions", "on the target", "begins", "to copy")
    for topic, of_topic in by_topic(ranges).items():
        remote = plan.remote_topics[topic]
        _row(
            table,
            topic,
            remote,
            number_format.count(len(of_topic)),
            _target_text(plan, remote),
            _start_text(request, list(of_topic.values())),
            number_format.count(sum(found.length for found in of_topic.values())),
        )
    console.print(table)
    for line in (*_loss_warnings(request, ranges), *_notes(request, plan)):
        console.print(line, soft_wrap=True)


def show_summary(
    console: rich.console.Console, progress: CopyProgress, tasks: int, events: Sequence[CopyEvent]
) -> None:
    """Print what was copied, in all and topic by topic."""
    table = _table("topic", "copy", "partitions", "records", "bytes", "lag", "batches by lane")
    for topic in progress.topics:
        _row(
            table,
            topic.topic,
            topic.remote_topic,
            number_format.count(topic.partitions),
            number_format.count(topic.records),
            number_format.size(topic.bytes),
            number_format.count(topic.lag),
            _lanes_text(topic.lanes),
        )
    console.print(table)
    seconds = max(progress.copying_s, 1.0)  # reports come once a second
    console.print(
        f"Copied {number_format.count_with_noun(progress.records, 'record')},"
        f" {number_format.size(progress.bytes)},"
        f" in {number_format.duration(progress.elapsed_s)}; in the"
        f" {number_format.duration(progress.copying_s)} after Spark had started:"
        f" {number_format.per_second(progress.records / seconds)},"
        f" {number_format.size_per_second(progress.bytes / seconds)},"
        f" {number_format.count_with_noun(tasks, 'task')}."
    )
    console.print(f"Events: {_events_text(events)}.")


def show_positions(console: rich.console.Console, progress: CopyProgress) -> None:
    """Print the position of each topic."""
    table = _table("topic", "position", "lag")
    for topic in progress.topics:
        _row(
            table, topic.topic, number_format.count(topic.position), number_format.count(topic.lag)
        )
    console.print(table)


def show_blocked(console: rich.console.Console, blocked: Iterable[BlockedPartition]) -> None:
    """Print which partitions do not move, why, and what to do."""
    blocked = list(blocked)
    for block in blocked:
        console.print(blocked_line(block), soft_wrap=True)
    if any(block.is_halted for block in blocked):
        console.print(
            "Decide about the lost records: --on-loss skip continues with the first record that the"
            " source still has (the event names the lost range), --on-loss restart copies the"
            " partition again from its beginning.",
            soft_wrap=True,
        )
    if any(not block.is_halted for block in blocked):
        console.print(
            "Fix the reasons above, then run the same command: it continues from there.",
            soft_wrap=True,
        )


def _notes(request: CopyRequest, plan: CopyPlan) -> Iterable[str]:
    positions = f"Positions are stored in {request.offsets_topic.name} on {request.flow.target}"
    if plan.offsets_topic is not None:
        replicas = plan.offsets_topic.replication_factor
        positions += f" (to be created, {number_format.count_with_noun(replicas, 'replica')})"
    yield f"{positions}, for the connector {request.connector}."
    yield (
        f"{number_format.count_with_noun(len(plan.partitions), 'partition')},"
        f" {number_format.count_with_noun(len(plan.tasks), 'task')}."
    )
    if request.delivery is DeliveryMode.EXACTLY_ONCE:
        yield (
            f"Exactly once: read the copies with isolation.level=read_committed; transactional ids"
            f" begin with {request.group_id}-{request.connector}-."
        )
    if plan.skipped_topics:
        yield (
            f"Never copied (internal, or copied from the target): {', '.join(plan.skipped_topics)}."
        )


def _loss_warnings(request: CopyRequest, ranges: PartitionRanges) -> Iterable[str]:
    for partition, partition_range in ranges.items():
        if partition_range.has_data_loss:
            yield (
                f"{partition}: {request.flow.source} no longer holds the next offsets,"
                f" {partition_range.start_offset} to {partition_range.log_start_offset - 1};"
                f" --on-loss {request.on_loss} decides."
            )


def _target_text(plan: CopyPlan, remote: str) -> str:
    for new in plan.topics.new_topics:
        if new.name == remote:
            return _creation_text(new)
    for grown in plan.topics.new_partitions:
        if grown.name == remote:
            return f"grows to {number_format.count_with_noun(grown.partitions, 'partition')}"
    return "exists"


def _creation_text(new: NewRemoteTopic) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in sorted(new.configs.items()))
    replicas = number_format.count_with_noun(new.replication_factor, "replica")
    return f"to be created: {replicas}" + (f", {settings}" if settings else "")


def _start_text(request: CopyRequest, ranges: Sequence[PartitionRange]) -> str:
    known = sum(partition_range.is_in_ledger for partition_range in ranges)
    start = "earliest" if request.start is None else str(request.start.at)
    if not known:
        return start
    return "stored position" if known == len(ranges) else f"stored position, new ones {start}"


def _lanes_text(lanes: Mapping[str, int]) -> str:
    most = sorted(lanes.items(), key=lambda lane: (-lane[1], lane[0]))
    return ", ".join(f"{reason} {number_format.count(number)}" for reason, number in most) or "-"


def _events_text(events: Sequence[CopyEvent]) -> str:
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
