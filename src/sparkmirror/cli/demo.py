"""`sparkmirror demo`: two real clusters on this computer, and what a mirror between them would do.

Starts primary and backup, fills the primary, compiles an mm2.properties for the two, and plans the
flow with the same rules that copy it. Every figure it prints was asked of the brokers. Everything
is gone when it ends.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import click
import rich.box
import rich.console
import rich.table

from sparkmirror.cli.progress import ticking
from sparkmirror.cluster.admin import Admin, Position
from sparkmirror.cluster.record import NewRecord
from sparkmirror.config import properties
from sparkmirror.config.dedicated import Dedicated
from sparkmirror.errors import LabError
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.jars import Jars
from sparkmirror.lab.spec import ClusterSpec, TopicSpec
from sparkmirror.mirror.filters import DefaultTopicFilter
from sparkmirror.mirror.naming import DefaultPolicy
from sparkmirror.mirror.selection import Selection
from sparkmirror.mirror.topic_plan import TopicPlan, plan_topics
from sparkmirror.model import SourceAndTarget, TopicPartition

RECORDS = 1_000
PARTITIONS = {"orders": 3, "payments": 1}
EXCLUDED = (r"mm2.*\.internal", r".*\.replica", "__.*")

FILE = """\
# An ordinary mm2.properties: MirrorMaker 2 and sparkmirror read it alike.
clusters = primary, backup
primary.bootstrap.servers = {primary}
backup.bootstrap.servers = {backup}
primary->backup.enabled = true
primary->backup.topics = orders, pay.*
replication.factor = 1
"""


@click.command()
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End by itself after so long; without it, Ctrl-C ends it.",
)
def demo(seconds: float | None) -> None:
    """Start two real clusters and show what a mirror between them would do."""
    console = rich.console.Console(highlight=False, soft_wrap=True)
    with Guard.watch() as guard, tempfile.TemporaryDirectory(prefix="sparkmirror-demo-") as home:
        guard.remove_at_end(Path(home))
        primary, backup = _start(Path(home), guard)
        _show_clusters(console, [primary, backup])
        file = Path(home) / "mm2.properties"
        file.write_text(FILE.format(primary=primary.bootstrap(), backup=backup.bootstrap()))
        _show_flows(console, file)
        _show_plan(console, _plan(primary, backup))
        _stay(console, seconds)
        for cluster in (primary, backup):
            cluster.kill()


def _start(home: Path, guard: Guard) -> list[Cluster]:
    topics = tuple(
        TopicSpec(name=name, partitions=count, records=_records(count))
        for name, count in PARTITIONS.items()
    )
    specs = [
        ClusterSpec(name="primary", topics=topics, fast_start=True),
        ClusterSpec(name="backup", fast_start=True),
    ]
    with ticking() as ticker:
        Jars().ensure(specs[0].version, ticker.fetch)
        clusters = Cluster.start_all(specs, home, guard, ticker.say)
    return sorted(clusters, key=lambda cluster: cluster.name, reverse=True)


def _records(partitions: int) -> tuple[NewRecord, ...]:
    return tuple(
        NewRecord(
            key=f"key-{number % 17}".encode(),
            value=f"record {number}".encode(),
            headers=(("number", str(number).encode()),),
            partition=number % partitions,
        )
        for number in range(RECORDS)
    )


def _held(cluster: Cluster) -> dict[str, int]:
    """Ask a cluster how many records each of its topics holds."""
    with Admin(cluster.access()) as admin:
        partitions = _partitions(admin)
        starts = admin.offsets(partitions, Position.EARLIEST)
        ends = admin.offsets(partitions, Position.LATEST)
    held: dict[str, int] = {}
    for partition in partitions:
        size = ends[partition] - starts[partition]
        held[partition.topic] = held.get(partition.topic, 0) + size
    return held


def _show_clusters(console: rich.console.Console, clusters: list[Cluster]) -> None:
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, title="Two real clusters")
    for heading in ("cluster", "bootstrap.servers", "kafka", "topic", "records"):
        table.add_column(heading, justify="right" if heading == "records" else "left")
    for cluster in clusters:
        held = _held(cluster)
        _check(cluster, held)
        rows: Mapping[str, int | str] = held or {"(no topic yet)": ""}
        for topic, count in sorted(rows.items()):
            table.add_row(
                cluster.name, cluster.bootstrap(), cluster.spec.version, topic, str(count)
            )
    console.print(table)


def _check(cluster: Cluster, held: Mapping[str, int]) -> None:
    wanted = {topic.name: len(topic.records) for topic in cluster.spec.topics}
    if dict(held) != wanted:
        raise LabError(f"{cluster.name} holds {dict(held)} records instead of {wanted}")


def _show_flows(console: rich.console.Console, file: Path) -> None:
    dedicated = Dedicated.open(properties.load(file), os.environ)
    console.print(f"{file} says:")
    for line in file.read_text().splitlines():
        console.print(f"    {line}", markup=False)
    flows = ", ".join(str(flow) for flow in dedicated.flows_to_run())
    console.print(f"\nThat makes these flows: {flows}", markup=False)


def _plan(primary: Cluster, backup: Cluster) -> TopicPlan:
    selection = Selection(
        flow=SourceAndTarget("primary", "backup"),
        policy=DefaultPolicy(),
        topic_filter=DefaultTopicFilter.of(["orders", "pay.*"], EXCLUDED),
    )
    with Admin(primary.access()) as there, Admin(backup.access()) as here:
        source, target = _partitions(there), _partitions(here)
    return plan_topics(
        selection,
        source=selection.source_partitions(source),
        target=selection.target_partitions(target),
        replication_factor=1,
    )


def _partitions(admin: Admin) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, partition.index)
        for topic in admin.topics().values()
        if not topic.internal
        for partition in topic.partitions
    ]


def _show_plan(console: rich.console.Console, plan: TopicPlan) -> None:
    table = rich.table.Table(
        box=rich.box.SIMPLE_HEAD, pad_edge=False, title="What primary->backup would create"
    )
    for heading in ("source topic", "remote topic", "partitions", "replication factor"):
        table.add_column(heading)
    for new in plan.create:
        table.add_row(new.source_topic, new.name, str(new.partitions), str(new.replication_factor))
    console.print(table)


def _stay(console: rich.console.Console, seconds: float | None) -> None:
    """Keep the clusters up, so that people can look around."""
    how_long = "Ctrl-C ends it" if seconds is None else f"for {seconds:g} s"
    try:
        console.print(f"The clusters are up ({how_long}); everything is removed at the end.")
        time.sleep(seconds if seconds is not None else 10**9)
    except KeyboardInterrupt:
        console.print("Taking everything down.")
