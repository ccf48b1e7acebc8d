"""An encoded request in one version, with the decoder of its response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparkmirror.wire.batch.header import BytesLike
from sparkmirror.wire.net.buffer_pool import ResponseFrame

T = TypeVar("T")

_API_VERSIONS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest(Generic[T]):
    """One request without its header: the channel adds that."""

    name: str
    api_key: int
    version: int
    flexible: bool
    """Whether this version is flexible (KIP-482), which changes both headers."""
    body: Sequence[BytesLike]
    """Sent one after the other without a copy. They must not change before the response."""
    decode: Callable[[ResponseFrame, int], T]
    """Decodes the response in a frame, from the byte after its header. A decoder whose result keeps
    views of the frame retains it."""

    @property
    def flexible_response_header(self) -> bool:
        """Whether the header of the response ends with tagged fields.

        That of ApiVersions never does: a client reads it before versions are negotiated.
        """
        return self.flexible and self.api_key != _API_VERSIONS
