"""A request ready to be sent on a connection of a known version, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.header import Data

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[T]):
    """One request, without the header that the connection puts before it."""

    name: str
    api_key: int
    version: int
    flexible: bool
    """Whether this version speaks the flexible dialect: it changes both headers."""
    body: Sequence[Data]
    """Sent as they lie, one after the other: they must not change until the answer is there."""
    decode: Callable[[Frame, int], T]
    """Reads the answer in a frame, from the place after its header. Whatever keeps views of the
    frame holds it."""
