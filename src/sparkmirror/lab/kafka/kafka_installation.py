"""The Java and the jars with which a cluster's brokers run.

They are looked up at first use, so that the status and the stop of a cluster work without them.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from sparkmirror.directories import cache_directory
from sparkmirror.java.java_runtime import JavaRuntime, find_java
from sparkmirror.lab.cluster.broker_process import broker_command
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.cluster.storage import StorageFormatter
from sparkmirror.lab.kafka.class_archive import archive_file, archive_options
from sparkmirror.lab.kafka.jar_cache import JarCache
from sparkmirror.lab.zookeeper.zookeeper_process import zookeeper_command


class KafkaInstallation:
    """Runs brokers and formats data directories for one cluster."""

    def __init__(self, spec: ClusterSpec) -> None:
        self._spec = spec

    def broker_command(self, directory: Path) -> list[str]:
        """Return the command that runs a broker in its directory."""
        archive = archive_options(self.class_archive) if self._spec.fast_start else ()
        return broker_command(self._java.path, self._classpath, self._spec, directory, archive)

    def zookeeper_command(self, directory: Path) -> list[str]:
        """Return the command that runs the cluster's ZooKeeper in its directory."""
        version = self._spec.version
        return zookeeper_command(self._java.path, self._classpath, version, directory)

    def format_data_directory(self, data: Path, *, cluster_id: str, node_id: int) -> None:
        """Create the empty data directory of one node. With ZooKeeper a broker formats it."""
        if self._spec.has_zookeeper:
            data.mkdir(parents=True)
            return
        formatter = StorageFormatter(
            version=self._spec.version,
            java=self._java.path,
            classpath=self._classpath,
            cache=cache_directory(os.environ),
        )
        formatter.format(data, cluster_id=cluster_id, node_id=node_id)

    @cached_property
    def class_archive(self) -> Path:
        """Where the class archive of these jars is, if there is one."""
        jars = JarCache().ensure(self._spec.version)
        return archive_file(cache_directory(os.environ), self._spec.version, self._java, jars)

    @cached_property
    def _java(self) -> JavaRuntime:
        return find_java()

    @cached_property
    def _classpath(self) -> str:
        return JarCache().classpath(self._spec.version)
