"""The process of one broker: its command line and its files.

This module does not wait for the cluster to notice that a broker is down or back; `readiness` does.
"""

from __future__ import annotations

from pathlib import Path

from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.cluster.sasl_config import oauth_jvm_options
from sparkmirror.lab.kafka.jvm_options import FAST_START_OPTIONS, server_options
from sparkmirror.lab.processes.server_process import ServerProcess

_MAIN = "kafka.Kafka"
# The options of Kafka's own start script.
_DEFAULT_OPTIONS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)


def broker_command(
    java: Path,
    classpath: str,
    spec: ClusterSpec,
    directory: Path,
    archive_options: tuple[str, ...] = (),
) -> list[str]:
    """Return the command that runs one broker in its directory."""
    return [
        str(java),
        f"-Xmx{spec.heap}",
        "-Xms64m",
        *(FAST_START_OPTIONS if spec.fast_start else _DEFAULT_OPTIONS),
        *server_options(spec.version, directory),
        *oauth_jvm_options(spec.oauth),
        *archive_options,
        *spec.jvm_options,
        *("-cp", classpath, _MAIN, str(directory / BrokerProcess.PROPERTIES_NAME)),
    ]


class BrokerProcess(ServerProcess):
    """One node of a cluster, running or not. Its data directory is its log.dirs."""

    PROPERTIES_NAME = "server.properties"
    LOG_NAME = "broker.log"
