"""What a slot of a cluster asks its Spark about a query, and the answer: each one line of JSON.

The answer has the secret of a gateway, so it travels through a pipe only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from sparkmirror.engine.gateway_process import GatewayAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """The query of a connector, of which Spark is to make a view."""

    settings: Mapping[str, str] = field(repr=False)
    """Spark's settings. Those of the first request start Spark."""
    transforms: Mapping[str, str] = field(repr=False)
    """The connector's transformations, which have the query (`transforms.spark_query`)."""
    chain: str
    """Their fingerprint, which names the view."""

    def to_line(self) -> bytes:
        """The request as one line."""
        return _line(
            {
                "settings": dict(self.settings),
                "transforms": dict(self.transforms),
                "chain": self.chain,
            }
        )

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line of `to_line`."""
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAnswer:
    """The gateway to the JVM that has the view, or why there is no view."""

    port: int = 0
    secret: str = field(default="", repr=False)
    error: str = ""

    @property
    def address(self) -> GatewayAddress:
        """The gateway; only without an error."""
        assert not self.error
        return GatewayAddress(self.port, self.secret)

    def to_line(self) -> bytes:
        """The answer as one line."""
        return _line(asdict(self))

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read a line of `to_line`."""
        return cls(**json.loads(line))


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
