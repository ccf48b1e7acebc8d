"""Figures that Java's workers have and this one has not, with the reasons.

A test compares this list with a recording: each figure of the recording is exposed or is here, and
none is both. docs/operate.md prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparkmirror.metrics.names.mbeans import MBEAN_TYPES, MBeanType, jmx_name

_WORKER_CONNECTIONS: Final = (
    "the worker does not count what happens on its own connections; a failed login or a broker "
    "that does not answer is a problem in the status, which `sparkmirror_problems` counts"
)
_TASK_CONNECTIONS: Final = (
    "tasks run in Spark's processes, which report what they copied and not what happens on their "
    "connections"
)
_NO_POLL: Final = "a task fetches from all its partitions at all times; nothing polls it"
_REQUESTS: Final = "tasks do not report single requests"
_NO_REGISTRY: Final = "there is no registry of Kafka's metrics whose entries could be counted"
_NO_CLIENTS: Final = "there are no clients of Kafka's with a version or a start of their own"
_NO_GROUP: Final = "as in Java, the consumers of tasks are in no group"
_BY_TOPIC: Final = "records and bytes of each topic are in `MirrorSourceConnector`"
_BATCHES_AS_THEY_ARE: Final = "batches are sent as they were fetched; no producer collects records"
_NO_BUFFER_WAIT: Final = "a task fetches less when its buffer is full, and nothing waits for it"
_TRANSACTIONS: Final = "transactions are those of the driver, not of a producer"
_RETRIES: Final = "a refused record is counted by `task-error-metrics`; tasks report no retries"

_NETWORK: Final = (
    *("connection-close-rate", "connection-close-total", "connection-count"),
    *("connection-creation-rate", "connection-creation-total"),
    *("failed-authentication-rate", "failed-authentication-total"),
    *("failed-reauthentication-rate", "failed-reauthentication-total"),
    *("io-ratio", "io-time-ns-avg", "io-time-ns-total"),
    *("io-wait-ratio", "io-wait-time-ns-avg", "io-wait-time-ns-total"),
    *("network-io-rate", "network-io-total"),
    *("reauthentication-latency-avg", "reauthentication-latency-max"),
    *("request-rate", "request-size-avg", "request-size-max", "request-total"),
    *("response-rate", "response-total", "select-rate", "select-total"),
    *("successful-authentication-no-reauth-total", "successful-authentication-rate"),
    *("successful-authentication-total", "successful-reauthentication-rate"),
    "successful-reauthentication-total",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentMetrics:
    """Attributes of one type of MBeans; all of them if none is named."""

    bean: MBeanType
    attributes: tuple[str, ...] = ()
    reason: str

    def covers_jmx(self, name: str) -> bool:
        """Whether a name of the JMX exporter is one of these."""
        if not self.attributes:
            return name.startswith(f"{self.bean.jmx}_")
        return name in {jmx_name(self.bean, one) for one in self.attributes}

    def covers_strimzi(self, bean: MBeanType, attribute: str) -> bool:
        """Whether an attribute of an MBean is one of these."""
        is_same = (bean.domain, bean.type) == (self.bean.domain, self.bean.type)
        return is_same and (not self.attributes or attribute in self.attributes)


def _absent(kind: str, reason: str, *attributes: str) -> AbsentMetrics:
    return AbsentMetrics(bean=MBEAN_TYPES[kind], attributes=attributes, reason=reason)


def _of_domain(domain: str, kind: str, reason: str) -> AbsentMetrics:
    return AbsentMetrics(bean=MBeanType(domain=domain, type=kind, strimzi=""), reason=reason)


ABSENT_METRICS: Final = (
    _absent("connect-metrics", _WORKER_CONNECTIONS),
    _absent("connect-node-metrics", _WORKER_CONNECTIONS),
    _absent("admin-client-metrics", _WORKER_CONNECTIONS),
    _absent("admin-client-node-metrics", _WORKER_CONNECTIONS),
    _absent("consumer-node-metrics", _TASK_CONNECTIONS),
    _absent("producer-node-metrics", _TASK_CONNECTIONS),
    _absent("consumer-coordinator-metrics", _NO_GROUP),
    _absent("producer-topic-metrics", _BY_TOPIC),
    _absent("source-task-metrics", _NO_POLL, "poll-batch-avg-time-ms", "poll-batch-max-time-ms"),
    _absent(
        "consumer-metrics",
        _TASK_CONNECTIONS,
        "outgoing-byte-rate",
        "outgoing-byte-total",
        *_NETWORK,
    ),
    _absent(
        "consumer-metrics",
        _NO_POLL,
        *("last-poll-seconds-ago", "poll-idle-ratio-avg"),
        *("time-between-poll-avg", "time-between-poll-max"),
    ),
    _absent("consumer-metrics", _NO_GROUP, "commit-sync-time-ns-total", "committed-time-ns-total"),
    _absent(
        "consumer-fetch-manager-metrics",
        _REQUESTS,
        *("fetch-latency-avg", "fetch-latency-max", "fetch-rate", "fetch-size-avg"),
        *("fetch-size-max", "fetch-throttle-time-avg", "fetch-throttle-time-max", "fetch-total"),
        *("records-per-request-avg", "preferred-read-replica"),
    ),
    _absent(
        "consumer-fetch-manager-metrics",
        "`records-lag` has the lag of this moment; the start of a log is not reported",
        *("records-lag-avg", "records-lag-max", "records-lead", "records-lead-avg"),
        "records-lead-min",
    ),
    _absent(
        "producer-metrics",
        _TASK_CONNECTIONS,
        "incoming-byte-rate",
        "incoming-byte-total",
        *_NETWORK,
    ),
    _absent(
        "producer-metrics",
        _REQUESTS,
        *("metadata-age", "metadata-wait-time-ns-total"),
        *("produce-throttle-time-avg", "produce-throttle-time-max", "records-per-request-avg"),
        *("request-latency-avg", "request-latency-max", "requests-in-flight"),
    ),
    _absent(
        "producer-metrics",
        _BATCHES_AS_THEY_ARE,
        *("batch-size-avg", "batch-size-max", "batch-split-rate", "batch-split-total"),
        *("compression-rate-avg", "flush-time-ns-total"),
        *("record-queue-time-avg", "record-queue-time-max", "record-size-avg", "record-size-max"),
    ),
    _absent(
        "producer-metrics",
        _NO_BUFFER_WAIT,
        *("buffer-exhausted-rate", "buffer-exhausted-total", "bufferpool-wait-ratio"),
        *("bufferpool-wait-time-ns-total", "waiting-threads"),
    ),
    _absent(
        "producer-metrics",
        _RETRIES,
        *("record-error-rate", "record-error-total", "record-retry-rate", "record-retry-total"),
    ),
    _absent(
        "producer-metrics",
        _TRANSACTIONS,
        *("txn-abort-time-ns-total", "txn-begin-time-ns-total", "txn-commit-time-ns-total"),
        *("txn-init-time-ns-total", "txn-prepare-time-ns-total", "txn-send-offsets-time-ns-total"),
    ),
    *(
        _of_domain(domain, "kafka-metrics-count", _NO_REGISTRY)
        for domain in (
            *("kafka.connect", "kafka.connect.mirror"),
            *("kafka.consumer", "kafka.producer", "kafka.admin.client"),
        )
    ),
    *(
        _of_domain(domain, "app-info", _NO_CLIENTS)
        for domain in ("kafka.consumer", "kafka.producer", "kafka.admin.client")
    ),
)
