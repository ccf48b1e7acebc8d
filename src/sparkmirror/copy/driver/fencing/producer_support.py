"""What a target that may not be Apache Kafka supports for a producer. Pure.

A target supports                 so
producer ids and transactions     batches have sequences, a takeover has a fence
producer ids alone                batches have sequences, a takeover has no fence
neither                           batches have no sequence: each record arrives at least once
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.errors import ClusterError, RequestRefused, UnsupportedByBroker
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.apis import ADD_PARTITIONS_TO_TXN, END_TXN, INIT_PRODUCER_ID
from sparkmirror.wire.protocol.error_codes import ErrorCode

AT_LEAST_ONCE = (
    "; batches are appended without producer ids, one at a time in each partition. Each record"
    " arrives at least once: after a failure some may come twice, and no fence stops an earlier"
    " owner"
)
NO_FENCE = "; a takeover has no fence, so it waits until the last owner has stopped by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSupport:
    """What a target supports for the producer, and what it lacks, for the operator."""

    has_producer_ids: bool = True
    has_transactions: bool = True
    missing_feature: str = ""

    @property
    def event(self) -> tuple[str, str] | None:
        """Kind and text of the event for the operator; None if nothing is missing."""
        if not self.has_producer_ids:
            return "at-least-once", self.missing_feature + AT_LEAST_ONCE
        if not self.has_transactions:
            return "no-fence", self.missing_feature + NO_FENCE
        return None


def producer_support(versions: NodeApiVersions) -> ProducerSupport:
    """Decide by the APIs that a broker lists."""
    if not versions.supports(INIT_PRODUCER_ID.request_type.API_KEY):
        return ProducerSupport(
            has_producer_ids=False,
            has_transactions=False,
            missing_feature="the target does not support InitProducerId",
        )
    for api in (ADD_PARTITIONS_TO_TXN, END_TXN):
        if not versions.supports(api.request_type.API_KEY):
            return ProducerSupport(
                has_transactions=False, missing_feature=f"the target does not support {api.name}"
            )
    return ProducerSupport()


def require_transactions(
    support: ProducerSupport, cluster: str, *, routes_records: bool = False
) -> None:
    """Raise UnsupportedByBroker if a job that copies in transactions cannot do so.

    `routes_records`: it needs them because records of one topic go to different topics.
    """
    if support.has_transactions:
        return
    text = (
        ", and records cannot be copied exactly once;"
        " set exactly.once.source.support=disabled, or leave out --exactly-once"
    )
    if routes_records:
        text = (
            ", and transforms that send records of one topic to different topics need them; take"
            " TimestampRouter, and RegexRouter with another predicate than TopicNameMatches, out of"
            " transforms"
        )
    raise UnsupportedByBroker(
        cluster, f"{support.missing_feature}, so it has no transactions{text}"
    )


def support_after_refusal(
    present: ProducerSupport, error: ClusterError, *, is_transactional: bool
) -> ProducerSupport:
    """Return what is left after InitProducerId was refused; raises an error of another kind.

    A target that refuses it for a transactional id (`is_transactional`) has no transactions. A
    target that refuses it without one has no producer ids.
    """
    if isinstance(error, RequestRefused) and not ErrorCode(error.code).is_unsupported:
        raise error
    text = str(error).removeprefix(f"{error.cluster}: ")
    return ProducerSupport(
        has_producer_ids=present.has_producer_ids and is_transactional,
        has_transactions=False,
        missing_feature=f"the target refuses producer ids: {text}",
    )
