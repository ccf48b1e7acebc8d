"""The settings of topics that decide lanes, read from a broker with the reason where there is none.

A topic that cannot be described is a code, never a topic with default settings: whoever took a
missing right for defaults would choose wrong lanes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.wire.net.leader_calls import ApiResult
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Destination, NodeWithId, Router
from sparkmirror.wire.protocol.apis import DESCRIBE_CONFIGS
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import DescribeConfigsRequest
from sparkmirror.wire.protocol.response_errors import error_for_code

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
UNLIMITED_MS = 2**63 - 1

MAX_MESSAGE_BYTES = "max.message.bytes"
TIMESTAMP_TYPE = "message.timestamp.type"
COMPRESSION_TYPE = "compression.type"
CLEANUP_POLICY = "cleanup.policy"
TIMESTAMP_BEFORE_MAX_MS = "message.timestamp.before.max.ms"
TIMESTAMP_AFTER_MAX_MS = "message.timestamp.after.max.ms"
TIMESTAMP_DIFFERENCE_MAX_MS = "message.timestamp.difference.max.ms"
"""The one bound of brokers before 3.6, for both directions."""
REQUESTED_KEYS = (
    MAX_MESSAGE_BYTES,
    TIMESTAMP_TYPE,
    COMPRESSION_TYPE,
    CLEANUP_POLICY,
    TIMESTAMP_BEFORE_MAX_MS,
    TIMESTAMP_AFTER_MAX_MS,
    TIMESTAMP_DIFFERENCE_MAX_MS,
)
PRODUCER_ID_EXPIRATION_MS = "producer.id.expiration.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLogConfig:
    """What a topic takes and does with it. Times are in milliseconds around the broker's now."""

    max_message_bytes: int
    log_append_time: bool
    compression_type: str
    cleanup_policy: frozenset[str]
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int

    @property
    def is_compacted(self) -> bool:
        """Whether every record needs a key."""
        return "compact" in self.cleanup_policy

    @classmethod
    def from_configs(cls, values: Mapping[str, str | None]) -> TopicLogConfig:
        """Take the values that a broker gave."""
        both_ways = values.get(TIMESTAMP_DIFFERENCE_MAX_MS) or str(UNLIMITED_MS)
        return cls(
            max_message_bytes=int(values[MAX_MESSAGE_BYTES] or 0),
            log_append_time=values[TIMESTAMP_TYPE] == "LogAppendTime",
            compression_type=values[COMPRESSION_TYPE] or "producer",
            cleanup_policy=frozenset((values[CLEANUP_POLICY] or "").split(",")) - {""},
            timestamp_before_max_ms=int(values.get(TIMESTAMP_BEFORE_MAX_MS) or both_ways),
            timestamp_after_max_ms=int(values.get(TIMESTAMP_AFTER_MAX_MS) or both_ways),
        )


def describe_topic_log_configs(
    router: Router, topics: Iterable[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> dict[str, ApiResult[TopicLogConfig]]:
    """Describe topics, each with its settings or the code that says why not."""
    described = _describe(
        router, TOPIC_RESOURCE, list(topics), REQUESTED_KEYS, AnyBroker(), timeout_s
    )
    return {
        name: ApiResult(
            code, TopicLogConfig.from_configs(values) if code is ErrorCode.NONE else None
        )
        for name, (code, values) in described.items()
    }


def producer_id_expiration_ms(
    router: Router, node_id: int, *, timeout_s: float = CALL_TIMEOUT_S
) -> int:
    """After how long a broker forgets a producer; NotAuthorized if it may not be asked."""
    keys = (PRODUCER_ID_EXPIRATION_MS,)
    described = _describe(
        router, BROKER_RESOURCE, [str(node_id)], keys, NodeWithId(node_id), timeout_s
    )
    code, values = described[str(node_id)]
    value = values.get(PRODUCER_ID_EXPIRATION_MS)
    if code is not ErrorCode.NONE or value is None:
        raise error_for_code(
            router.client.cluster, DESCRIBE_CONFIGS.name, code, f"broker {node_id}"
        )
    return int(value)


def _describe(
    router: Router,
    kind: int,
    names: Collection[str],
    keys: Collection[str],
    to: Destination,
    timeout_s: float,
) -> dict[str, tuple[ErrorCode, dict[str, str | None]]]:
    answer = router.call(
        DESCRIBE_CONFIGS,
        lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=list(keys)
                )
                for name in names
            ],
            include_synonyms=False,
        ),
        to,
        codes=lambda answer: (result.error_code for result in answer.results),
        timeout_s=timeout_s,
    )
    return {
        result.resource_name: (
            ErrorCode(result.error_code),
            {config.name: config.value for config in result.configs or ()},
        )
        for result in answer.results
    }
