"""A request ready to be sent on a connection of a known version, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparkmirror.wire.batch.header import BytesLike
from sparkmirror.wire.net.buffers import ResponseFrame

T = TypeVar("T")

_API_VERSIONS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest(Generic[T]):
    """One request, without the header that the connection puts before it."""

    name: str
    api_key: int
    version: int
    flexible: bool
    """Whether this version speaks the flexible dialect: it changes both headers."""
    body: Sequence[BytesLike]
    """Sent as they lie, one after the other: they must not change until the answer is there."""
    decode: Callable[[ResponseFrame, int], T]
    """Reads the answer in a frame, from the place after its header. Whatever keeps views of the
    frame holds it."""

    @property
    def flexible_response_header(self) -> bool:
        """Whether the answer's header ends with tagged fields.

        That of ApiVersions never does: a client must read it before anything is agreed on.
        """
        return self.flexible and self.api_key != _API_VERSIONS
