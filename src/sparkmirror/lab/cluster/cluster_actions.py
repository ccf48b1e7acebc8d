"""The actions on a running cluster, each for one broker or for all brokers.

An action on all brokers first acts on every broker and then waits: brokers of a paused quorum
become ready only after all of them were resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkmirror.errors import Conflict
from sparkmirror.lab.cluster.broker_process import BrokerProcess
from sparkmirror.lab.cluster.cluster import Cluster


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAction:
    """One action, with its help and the texts that the command prints."""

    name: str
    help: str
    progress_text: str
    done_text: str
    run_on_broker: Callable[[Cluster, int], None]
    run_on_cluster: Callable[[Cluster], None]


def _pause(cluster: Cluster) -> None:
    for broker in _running_brokers(cluster).values():
        broker.pause()


def _resume(cluster: Cluster) -> None:
    running = _running_brokers(cluster)
    for broker in running.values():
        broker.resume()
    for node_id in running:
        cluster.resume_broker(node_id)


def _running_brokers(cluster: Cluster) -> dict[int, BrokerProcess]:
    """Return the brokers that have a process. Raises Conflict if there is none."""
    running = {
        node_id: broker for node_id, broker in cluster.brokers.items() if broker.is_running()
    }
    if not running:
        raise Conflict(f"{cluster.name} is down: start it first.")
    return running


def _restart(cluster: Cluster) -> None:
    cluster.stop()
    cluster.start_brokers()


_ALL = (
    ClusterAction(
        name="start",
        help="Start brokers that are down.",
        progress_text="Starting",
        done_text="runs",
        run_on_broker=Cluster.start_broker,
        run_on_cluster=Cluster.start_brokers,
    ),
    ClusterAction(
        name="stop",
        help="Stop brokers in an orderly way; their data stays.",
        progress_text="Stopping",
        done_text="is down",
        run_on_broker=Cluster.stop_broker,
        run_on_cluster=Cluster.stop,
    ),
    ClusterAction(
        name="kill",
        help="Kill brokers, as a crash would; their data stays.",
        progress_text="Killing",
        done_text="is down",
        run_on_broker=Cluster.kill_broker,
        run_on_cluster=Cluster.kill,
    ),
    ClusterAction(
        name="pause",
        help="Freeze brokers: connections stay open, nothing is answered.",
        progress_text="Pausing",
        done_text="is paused",
        run_on_broker=Cluster.pause_broker,
        run_on_cluster=_pause,
    ),
    ClusterAction(
        name="resume",
        help="Let frozen brokers go on.",
        progress_text="Resuming",
        done_text="runs",
        run_on_broker=Cluster.resume_broker,
        run_on_cluster=_resume,
    ),
    ClusterAction(
        name="restart",
        help="Stop brokers in an orderly way and start them again.",
        progress_text="Restarting",
        done_text="runs",
        run_on_broker=Cluster.restart_broker,
        run_on_cluster=_restart,
    ),
    ClusterAction(
        name="wipe",
        help="Empty the disks of brokers and start them again.",
        progress_text="Wiping",
        done_text="runs, with an empty disk",
        run_on_broker=Cluster.wipe_broker,
        run_on_cluster=Cluster.wipe,
    ),
)
CLUSTER_ACTIONS = {action.name: action for action in _ALL}
