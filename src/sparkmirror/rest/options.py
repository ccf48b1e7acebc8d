"""How the REST server behaves: limits, who is let in, what is added to answers."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass, field

from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.basic_auth import Users
from sparkmirror.rest.cors import Cors
from sparkmirror.rest.header_rules import HeaderRules
from sparkmirror.rest.listener import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much and how long the server puts up with."""

    body_bytes: int = 8 * 1024 * 1024
    headers_s: float = 10.0
    """From the first byte of a request, or from the connection's beginning, to its last header."""
    body_s: float = 30.0
    request_s: float = 95.0
    """A worker gives up after 90 s by itself, and can say what it waited for."""
    health_s: float = 12.0
    """A worker gives up after 10 s by itself, and can say how far its start has come."""
    idle_s: int = 30
    """How long a connection is kept for another request."""
    calls: int = 64
    """How many requests the worker is busy with at a time; the others queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestOptions:
    """Everything but where to listen."""

    admin_listeners: tuple[Listener, ...] | None = None
    """Where /admin is served: None with the rest, an empty tuple nowhere."""
    tls: ssl.SSLContext | None = None
    admin_tls: ssl.SSLContext | None = None
    users: Users | None = None
    cors: Cors = field(default_factory=Cors)
    headers: HeaderRules = field(default_factory=lambda: HeaderRules((), time.time))
    limits: Limits = field(default_factory=Limits)
    access_log: bool = True
    flows: tuple[SourceAndTarget, ...] = ()
    """The flows that this process runs in dedicated mode; none for a Connect worker."""
