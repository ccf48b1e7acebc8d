"""Prints a lab as tables, and the commands to try next."""

from __future__ import annotations

from collections.abc import Sequence

import rich.box
import rich.console
import rich.table

from sparkmirror.cli.lab.lookup import lab_flag
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.cluster.cluster_status import ClusterStatus
from sparkmirror.lab.detached_lab import tool_connection


def show_status(console: rich.console.Console, clusters: Sequence[ClusterStatus]) -> None:
    """Print one line per broker, then address and directory of each cluster."""
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("cluster", "kafka", "broker", "state", "pid", "ports"):
        table.add_column(heading, no_wrap=True)
    for cluster in clusters:
        for broker in cluster.brokers:
            table.add_row(
                cluster.name,
                cluster.version,
                str(broker.id),
                broker.state,
                str(broker.pid or "-"),
                ", ".join(str(broker.ports[name]) for name in cluster.listeners),
            )
    console.print(table)
    for cluster in clusters:
        for listener, bootstrap in cluster.listeners.items():
            console.print(f"{cluster.name}: {listener} at {bootstrap}")
        if cluster.zookeeper is not None:
            console.print(f"{cluster.name}: ZooKeeper at {cluster.zookeeper}")
        console.print(f"{cluster.name}: files in {cluster.directory}")


def show_clients(console: rich.console.Console, clusters: Sequence[Cluster]) -> None:
    """Print the paths of the client settings of secured clusters."""
    for cluster in clusters:
        file = tool_connection(cluster).config_file
        if file:
            console.print(f"{cluster.name}: client settings in {file}")


def show_next_steps(console: rich.console.Console, lab: str, specs: Sequence[ClusterSpec]) -> None:
    """Print commands for a lab that has just started."""
    run = f"sparkmirror lab exec{lab_flag(lab)}"
    topics = [topic.name for topic in specs[0].topics]
    topic = topics[0] if topics else "orders"
    create = f"{run} kafka-topics --create --topic {topic} --partitions 3"
    lines = [
        *([] if topics else [create]),
        f"{run} kafka-console-producer --topic {topic}",
        f"{run} kafka-console-consumer --topic {topic} --from-beginning",
        *(f"{run} --cluster {spec.name} kafka-topics --list" for spec in specs[1:2]),
        f"sparkmirror lab status{lab_flag(lab)}",
        f"sparkmirror lab down{lab_flag(lab)}",
    ]
    console.print("\nTry next:")
    for line in lines:
        console.print(f"  {line}")
