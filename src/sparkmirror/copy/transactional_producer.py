"""A term: the identity under which one task attempt commits its transactions.

The driver takes the transactional id of a task, which aborts what was open and fences whoever had
it before, and hands the identity to one task attempt. A term that has failed is over: the task
gives everything back, and the driver makes a new one. Travels as JSON over the control channel.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalProducer:
    """Everything a task must know to commit. `version` is the cluster's transaction.version."""

    transactional_id: str
    identity: ProducerIdAndEpoch
    transaction_version: int
    connector: str
    offsets_topic: str
    commit_interval_s: float

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self) | {"identity": list(self.identity)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**value | {"identity": ProducerIdAndEpoch(*value["identity"])})
