"""Several herders of one group in this process, on Connect's topics in Kafka, with fake tasks."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.herder.distributed_herder import DistributedHerder
from sparkmirror.connect.herder.herder import ServerInfo
from sparkmirror.connect.herder.herder_dependencies import HerderDependencies
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.mirror.connect_topics.connect_configs import ConfigProperties
from sparkmirror.store.backing_stores import kafka_backing_stores
from sparkmirror.worker.group.group_settings import WorkerGroupSettings
from sparkmirror.worker.group.worker_coordinator import WorkerCoordinator
from tests.support.connect.fake_connectors import ConnectorProbe, fake_connector_registry
from tests.support.connect.in_memory_herder import HerderHarness
from tests.support.connect.kafka_herder import worker_config
from tests.support.kafka.clusters import SharedCluster


class HerderGroup:
    """The workers of one group. A worker asks the leader without HTTP."""

    def __init__(self, cluster: SharedCluster, group: str, **config: str) -> None:
        """`config` has keys of the worker with `_` for dots."""
        self.group_id = group
        self._cluster = cluster
        self._config = worker_config(cluster, group, **config)
        self.workers: dict[str, HerderHarness] = {}

    def start(self, worker_id: str) -> HerderHarness:
        """Start a worker and wait for the end of its start."""
        probe, fenced = ConnectorProbe(), list[Sequence[str]]()
        parsed = DISTRIBUTED.parse(self._config)
        herder = DistributedHerder(
            WorkerSettings.from_config(parsed, worker_id, self._config),
            kafka_backing_stores(self._config, self._cluster.access),
            HerderDependencies(
                registry=fake_connector_registry(probe),
                get_server_info=lambda: ServerInfo(version="1", commit="c", kafka_cluster_id=None),
                fencer=fenced.append,
                member=WorkerCoordinator(
                    WorkerGroupSettings.from_config(parsed, self._config),
                    self._cluster.access,
                    f"client-{worker_id}",
                ),
                leader_requests=self,
                get_url=lambda: worker_id,
            ),
        )
        herder.start()
        self.workers[worker_id] = HerderHarness(herder, probe, fenced_ids=fenced)
        assert herder.await_started(60)
        return self.workers[worker_id]

    def stop(self, worker_id: str) -> None:
        """Stop a worker."""
        self.workers.pop(worker_id).herder.shut_down()

    def stop_all(self) -> None:
        """Stop all workers."""
        for worker_id in list(self.workers):
            self.stop(worker_id)

    def leader(self) -> DistributedHerder:
        """The herder of the leader."""
        return next(one.herder for one in self.workers.values() if one.herder.is_leader())

    def owners(self, connector: str) -> list[str]:
        """The workers of a connector's tasks by status, those that run; empty without a status."""
        any_worker = next(iter(self.workers.values()))
        if not any_worker.states(connector):
            return []
        status = any_worker.herder.connector_status(connector)
        return [one.worker_id for one in status.tasks.values() if one.state == "RUNNING"]

    def running_tasks(self, connector: str) -> list[int]:
        """The numbers of the tasks that run, on all workers, each as often as it runs."""
        return sorted(
            task for worker in self.workers.values() for task in worker.probe.running(connector)
        )

    # -- LeaderRequests --------------------------------------------------------------------------

    def put_task_configs(
        self, leader_url: str, connector: str, configs: Sequence[ConfigProperties]
    ) -> None:
        """Call the leader's herder."""
        self.workers[leader_url].herder.put_task_configs(connector, configs)

    def fence_zombies(self, leader_url: str, connector: str) -> None:
        """Call the leader's herder."""
        self.workers[leader_url].herder.fence_zombie_source_tasks(connector)
