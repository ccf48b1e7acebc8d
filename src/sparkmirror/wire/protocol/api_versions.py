"""Which versions of which requests a broker takes, and what its cluster has agreed on.

A broker answers ApiVersions with a range per request; a client uses a version inside the range
that it also knows. Knows no connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.wire.protocol.messages import ApiVersionsResponse

TRANSACTION_VERSION = "transaction.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeApiVersions:
    """One broker's answer to ApiVersions. `cluster` names it in errors."""

    cluster: str
    ranges: Mapping[int, tuple[int, int]]
    features: Mapping[str, int] = field(default_factory=dict)
    """Feature levels that the cluster has finalized."""

    @classmethod
    def from_response(cls, cluster: str, answer: ApiVersionsResponse) -> NodeApiVersions:
        """Take a broker's answer."""
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
        """How the cluster does transactions: from 2 on, an end bumps the epoch (KIP-890)."""
        return self.features.get(TRANSACTION_VERSION, 0)

    def supports(self, api_key: int) -> bool:
        """Tell whether the broker knows the request at all."""
        return api_key in self.ranges

    def latest_usable_version(self, name: str, api_key: int, known: Sequence[int]) -> int:
        """Return the highest version that both know; `known` are the ones we speak."""
        lowest, highest = self.ranges.get(api_key, (0, -1))
        shared = [version for version in known if lowest <= version <= highest]
        if shared:
            return max(shared)
        if highest < 0:
            raise UnsupportedByBroker(self.cluster, f"the broker does not know {name} requests")
        raise UnsupportedByBroker(
            self.cluster,
            f"the broker takes {name} in versions {lowest} to {highest}, needed is one of"
            f" {', '.join(map(str, sorted(known)))}",
        )
