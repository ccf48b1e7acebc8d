"""The transactional producer of one task attempt.

The driver initialises the transactional id of a task. This aborts an open transaction and fences
the previous owner. The driver sends the producer id and epoch to one task attempt. After a failure
the task returns all leases, and the driver initialises the transactional id again. Travels as JSON
over the control connection.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalProducer:
    """Everything a task needs to commit. `transaction_version` is the cluster feature."""

    transactional_id: str
    identity: ProducerIdAndEpoch
    transaction_version: int
    connector: str
    offsets_topic: str
    commit_interval_s: float

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self) | {"identity": list(self.identity)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        return cls(**value | {"identity": ProducerIdAndEpoch(*value["identity"])})
