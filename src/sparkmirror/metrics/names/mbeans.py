"""The types of Kafka's MBeans, and the beginnings that rule sets make of them for Prometheus.

An MBean has attributes, such as `record-count`. The name of a metric is the beginning for the type
of the MBean and the attribute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class MBeanType:
    """One type of MBeans."""

    domain: str
    type: str
    strimzi: str
    """The beginning of names by Strimzi's rules."""
    aws: str = ""
    """The same by AWS's rules; empty if it is the same."""

    @property
    def jmx(self) -> str:
        """The beginning of names by the JMX exporter itself."""
        return _joined(f"{self.domain}_{self.type}")


def _joined(text: str) -> str:
    return re.sub(r"[.-]", "_", text)


def strimzi_name(bean: MBeanType, attribute: str) -> str:
    """Return the name of an attribute by Strimzi's rules."""
    return f"{bean.strimzi}_{_joined(attribute)}"


def jmx_name(bean: MBeanType, attribute: str) -> str:
    """Return the name of an attribute by the JMX exporter itself: no type, so no `_total`."""
    return f"{bean.jmx}_{_joined(attribute).removesuffix('_total')}"


MIRROR_SOURCE: Final = MBeanType(
    domain="kafka.connect.mirror",
    type="MirrorSourceConnector",
    strimzi="kafka_connect_mirror_mirrorsourceconnector",
    aws="kafka_connect_mirror_source_connector",
)
MIRROR_CHECKPOINT: Final = MBeanType(
    domain="kafka.connect.mirror",
    type="MirrorCheckpointConnector",
    strimzi="kafka_connect_mirror_mirrorcheckpointconnector",
    aws="kafka_connect_mirror_checkpoint_connector",
)


def _bean(domain: str, kind: str) -> MBeanType:
    """Return a type whose name ends in `-metrics`, which Strimzi's rules leave out."""
    name = _joined(kind.removesuffix("-metrics"))
    return MBeanType(domain=domain, type=kind, strimzi=f"kafka_{name}")


def _connect(kind: str) -> MBeanType:
    name = _joined(kind.removesuffix("-metrics"))
    return MBeanType(domain="kafka.connect", type=kind, strimzi=f"kafka_connect_{name}")


MBEAN_TYPES: Final = {
    bean.type: bean
    for bean in (
        MIRROR_SOURCE,
        MIRROR_CHECKPOINT,
        _bean("kafka.connect", "connect-worker-rebalance-metrics"),
        _bean("kafka.connect", "connect-worker-metrics"),
        _bean("kafka.connect", "connect-coordinator-metrics"),
        _bean("kafka.connect", "connect-node-metrics"),
        _bean("kafka.connect", "connect-metrics"),
        _connect("connector-task-metrics"),
        _connect("connector-metrics"),
        _connect("source-task-metrics"),
        _connect("task-error-metrics"),
        _bean("kafka.consumer", "consumer-fetch-manager-metrics"),
        _bean("kafka.consumer", "consumer-coordinator-metrics"),
        _bean("kafka.consumer", "consumer-node-metrics"),
        _bean("kafka.consumer", "consumer-metrics"),
        _bean("kafka.producer", "producer-topic-metrics"),
        _bean("kafka.producer", "producer-node-metrics"),
        _bean("kafka.producer", "producer-metrics"),
        _bean("kafka.admin.client", "admin-client-node-metrics"),
        _bean("kafka.admin.client", "admin-client-metrics"),
    )
}
"""By type. Types of which several domains have one, such as `app-info`, are not there."""


def find_bean(name: str) -> MBeanType | None:
    """Return the MBean of a metric with a name by Strimzi's rules; None if Kafka has none."""
    found = [bean for bean in MBEAN_TYPES.values() if name.startswith(f"{bean.strimzi}_")]
    return max(found, key=lambda bean: len(bean.strimzi), default=None)
