"""Figures of Kafka's clients, with the names that Strimzi's rules for the JMX exporter give them.

A task has no consumer and no producer of Kafka's, but a fetcher and a sender in their place. The
figures have the client ids that MirrorMaker 2's clients would have.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.metrics.definition import MetricDefinition, MetricType

_CLIENT: Final = ("clientid",)


def _total(name: str, doc: str) -> MetricDefinition:
    return MetricDefinition(
        name=f"kafka_{name}_total", doc=doc, labels=_CLIENT, type=MetricType.COUNTER
    )


def _rate(name: str, doc: str) -> MetricDefinition:
    return MetricDefinition(name=f"kafka_{name}_rate", doc=doc, labels=_CLIENT)


RECORDS_LAG: Final = MetricDefinition(
    name="kafka_consumer_fetch_manager_records_lag",
    doc="Offsets that a task has still to copy. `topic` is the source topic.",
    labels=("clientid", "topic"),
    has_partitions=True,
)
RECORDS_CONSUMED: Final = _total(
    "consumer_fetch_manager_records_consumed",
    "Records that a task fetched and the target acknowledged.",
)
BYTES_CONSUMED: Final = _total(
    "consumer_fetch_manager_bytes_consumed",
    "Bytes of record batches that a task fetched and the target acknowledged.",
)
INCOMING_BYTES: Final = _total(
    "consumer_incoming_byte",
    "Bytes from the source: of record batches that the target acknowledged.",
)
OUTGOING_BYTES: Final = _total(
    "producer_outgoing_byte",
    "Bytes to the target: of record batches that it acknowledged.",
)
RECORDS_SENT: Final = _total("producer_record_send", "Records that the target acknowledged.")
RECORDS_CONSUMED_RATE: Final = _rate(
    "consumer_fetch_manager_records_consumed",
    "Records fetched and acknowledged in a second, over the sample window.",
)
BYTES_CONSUMED_RATE: Final = _rate(
    "consumer_fetch_manager_bytes_consumed",
    "Bytes fetched and acknowledged in a second, over the sample window.",
)
INCOMING_BYTE_RATE: Final = _rate(
    "consumer_incoming_byte", "Bytes from the source in a second, over the sample window."
)
OUTGOING_BYTE_RATE: Final = _rate(
    "producer_outgoing_byte", "Bytes to the target in a second, over the sample window."
)
RECORD_SEND_RATE: Final = _rate(
    "producer_record_send", "Records to the target in a second, over the sample window."
)
BUFFER_TOTAL_BYTES: Final = MetricDefinition(
    name="kafka_producer_buffer_total_bytes",
    doc="Bytes that a task may have fetched and not acknowledged.",
    labels=_CLIENT,
)
BUFFER_AVAILABLE_BYTES: Final = MetricDefinition(
    name="kafka_producer_buffer_available_bytes",
    doc="Bytes of a task's buffer that are free.",
    labels=_CLIENT,
)
