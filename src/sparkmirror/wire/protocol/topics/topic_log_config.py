"""The configs of topics that decide lanes.

A topic that cannot be described has an error code, never default configs: with defaults in place
of a missing right, a task would choose wrong lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.wire.net.leader_calls import ApiResult
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Router
from sparkmirror.wire.protocol.apis import DESCRIBE_CONFIGS
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import DescribeConfigsRequest

TOPIC_RESOURCE = 2
UNLIMITED_MS = 2**63 - 1
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588

MAX_MESSAGE_BYTES = "max.message.bytes"
TIMESTAMP_TYPE = "message.timestamp.type"
COMPRESSION_TYPE = "compression.type"
TIMESTAMP_BEFORE_MAX_MS = "message.timestamp.before.max.ms"
TIMESTAMP_AFTER_MAX_MS = "message.timestamp.after.max.ms"
TIMESTAMP_DIFFERENCE_MAX_MS = "message.timestamp.difference.max.ms"
"""Brokers before 3.6 have this one bound for both directions."""
REQUESTED_KEYS = (
    MAX_MESSAGE_BYTES,
    TIMESTAMP_TYPE,
    COMPRESSION_TYPE,
    TIMESTAMP_BEFORE_MAX_MS,
    TIMESTAMP_AFTER_MAX_MS,
    TIMESTAMP_DIFFERENCE_MAX_MS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLogConfig:
    """Limits of a topic. Timestamp bounds are milliseconds before and after the broker's clock.

    The defaults are Kafka's.
    """

    max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
    log_append_time: bool = False
    compression_type: str = "producer"
    timestamp_before_max_ms: int = UNLIMITED_MS
    timestamp_after_max_ms: int = UNLIMITED_MS

    @classmethod
    def from_configs(cls, values: Mapping[str, str | None]) -> TopicLogConfig:
        """Parse the values of a DescribeConfigs response.

        A service that is not Apache Kafka may leave configs out: they have Kafka's defaults.
        """
        both_ways = values.get(TIMESTAMP_DIFFERENCE_MAX_MS) or str(UNLIMITED_MS)
        return cls(
            max_message_bytes=int(values.get(MAX_MESSAGE_BYTES) or DEFAULT_MAX_MESSAGE_BYTES),
            log_append_time=values.get(TIMESTAMP_TYPE) == "LogAppendTime",
            compression_type=values.get(COMPRESSION_TYPE) or "producer",
            timestamp_before_max_ms=int(values.get(TIMESTAMP_BEFORE_MAX_MS) or both_ways),
            timestamp_after_max_ms=int(values.get(TIMESTAMP_AFTER_MAX_MS) or both_ways),
        )


def describe_topic_log_configs(
    router: Router, topics: Iterable[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, ApiResult[TopicLogConfig]]:
    """Return the configs of each topic, or the error code for it."""
    names = list(topics)
    answer = router.call(
        DESCRIBE_CONFIGS,
        lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=name,
                    configuration_keys=list(REQUESTED_KEYS),
                )
                for name in names
            ],
            include_synonyms=False,
        ),
        AnyBroker(),
        codes=lambda answer: (result.error_code for result in answer.results),
        timeout_s=timeout_s,
    )
    return {
        result.resource_name: ApiResult(
            ErrorCode(result.error_code),
            None
            if result.error_code
            else TopicLogConfig.from_configs({c.name: c.value for c in result.configs}),
        )
        for result in answer.results
    }
