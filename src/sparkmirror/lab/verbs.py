"""What can be done to a cluster that runs: to one broker of it, or to all of them.

A table, because every verb comes in both forms. Verbs on a whole cluster act on all brokers
first and wait afterwards: a quorum that was frozen as a whole can only thaw as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.errors import Conflict
from sparkmirror.lab.broker import Broker
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.provision import make_users


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing to do, with what to say about it before and after."""

    name: str
    help: str
    doing: str
    done: str
    to_broker: Callable[[Cluster, int], None]
    to_cluster: Callable[[Cluster], None]


def _pause(cluster: Cluster) -> None:
    for broker in _running(cluster).values():
        broker.pause()


def _resume(cluster: Cluster) -> None:
    running = _running(cluster)
    for broker in running.values():
        broker.resume()
    for node_id in running:
        cluster.resume_broker(node_id)


def _running(cluster: Cluster) -> dict[int, Broker]:
    """The brokers that can be frozen or thawed; a cluster without any is down."""
    running = {node_id: b for node_id, b in cluster.brokers.items() if b.runs()}
    if not running:
        raise Conflict(f"{cluster.name} is down: start it first.")
    return running


def _restart(cluster: Cluster) -> None:
    cluster.stop()
    cluster.start_brokers()


def _wipe(cluster: Cluster) -> None:
    for broker in cluster.brokers.values():
        broker.wipe()
    cluster.start_brokers()
    if any(listener.has_users for listener in cluster.spec.listeners):
        make_users(cluster.clients.own_access(), cluster.spec.users)


_ALL = (
    Verb(
        name="start",
        help="Start brokers that are down.",
        doing="Starting",
        done="runs",
        to_broker=Cluster.start_broker,
        to_cluster=Cluster.start_brokers,
    ),
    Verb(
        name="stop",
        help="Stop brokers in an orderly way; their data stays.",
        doing="Stopping",
        done="is down",
        to_broker=Cluster.stop_broker,
        to_cluster=Cluster.stop,
    ),
    Verb(
        name="kill",
        help="Kill brokers, as a crash would; their data stays.",
        doing="Killing",
        done="is down",
        to_broker=Cluster.kill_broker,
        to_cluster=Cluster.kill,
    ),
    Verb(
        name="pause",
        help="Freeze brokers: connections stay open, nothing is answered.",
        doing="Pausing",
        done="is paused",
        to_broker=Cluster.pause_broker,
        to_cluster=_pause,
    ),
    Verb(
        name="resume",
        help="Let frozen brokers go on.",
        doing="Resuming",
        done="runs",
        to_broker=Cluster.resume_broker,
        to_cluster=_resume,
    ),
    Verb(
        name="restart",
        help="Stop brokers in an orderly way and start them again.",
        doing="Restarting",
        done="runs",
        to_broker=Cluster.restart_broker,
        to_cluster=_restart,
    ),
    Verb(
        name="wipe",
        help="Kill brokers, empty their disks and start them again.",
        doing="Wiping",
        done="runs, with an empty disk",
        to_broker=Cluster.wipe_broker,
        to_cluster=_wipe,
    ),
)
VERBS = {verb.name: verb for verb in _ALL}
