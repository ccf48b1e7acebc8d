"""The versions of each API that a broker supports, and the finalized features of its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.wire.protocol.kafka_python_messages import ApiVersionsResponse

TRANSACTION_VERSION = "transaction.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeApiVersions:
    """One broker's response to ApiVersions. `cluster` is the alias for errors."""

    cluster: str
    ranges: Mapping[int, tuple[int, int]]
    features: Mapping[str, int] = field(default_factory=dict)
    """Feature levels that the cluster has finalized."""

    @classmethod
    def from_response(cls, cluster: str, answer: ApiVersionsResponse) -> NodeApiVersions:
        """Read a response."""
        return cls(
            cluster=cluster,
            ranges={key.api_key: (key.min_version, key.max_version) for key in answer.api_keys},
            features={
                feature.name: feature.max_version_level
                for feature in answer.finalized_features or ()
            },
        )

    @property
    def transaction_version(self) -> int:
        """The level of `transaction.version`: from 2 on, EndTxn bumps the epoch (KIP-890)."""
        return self.features.get(TRANSACTION_VERSION, 0)

    def supports(self, api_key: int) -> bool:
        """Whether the broker supports the API."""
        return api_key in self.ranges

    def latest_usable_version(self, name: str, api_key: int, usable: Sequence[int]) -> int:
        """Return the highest of the usable versions that the broker supports.

        Raises UnsupportedByBroker if there is none.
        """
        lowest, highest = self.ranges.get(api_key, (0, -1))
        shared = [version for version in usable if lowest <= version <= highest]
        if shared:
            return max(shared)
        if highest < 0:
            raise UnsupportedByBroker(self.cluster, f"the broker does not support {name}")
        raise UnsupportedByBroker(
            self.cluster,
            f"the broker supports {name} in versions {lowest} to {highest}, needed is one of"
            f" {', '.join(map(str, sorted(usable)))}",
        )
