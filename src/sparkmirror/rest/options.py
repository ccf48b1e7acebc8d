"""How the REST server behaves: limits, who is let in, what is added to answers."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass, field

from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.http.basic_auth import BasicAuthUsers
from sparkmirror.rest.http.cors import Cors
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.response_headers import ResponseHeaderRules


@dataclass(frozen=True, slots=True, kw_only=True)
class RestLimits:
    """How much and how long the server puts up with."""

    max_body_bytes: int = 8 * 1024 * 1024
    headers_timeout_s: float = 10.0
    """From the first byte of a request, or from the connection's beginning, to its last header."""
    body_timeout_s: float = 30.0
    request_timeout_s: float = 95.0
    """A worker gives up after 90 s by itself, and can say what it waited for."""
    health_timeout_s: float = 12.0
    """A worker gives up after 10 s by itself, and can say how far its start has come."""
    keep_alive_s: int = 30
    """How long a connection is kept for another request."""
    max_concurrent_requests: int = 64
    """How many requests the worker is busy with at a time; the others queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestOptions:
    """Everything but where to listen."""

    admin_listeners: tuple[RestListener, ...] | None = None
    """Where /admin is served: None with the rest, an empty tuple nowhere."""
    tls: ssl.SSLContext | None = None
    admin_tls: ssl.SSLContext | None = None
    users: BasicAuthUsers | None = None
    cors: Cors = field(default_factory=Cors)
    response_headers: ResponseHeaderRules = field(
        default_factory=lambda: ResponseHeaderRules((), time.time)
    )
    limits: RestLimits = field(default_factory=RestLimits)
    access_log: bool = True
    flows: tuple[SourceAndTarget, ...] = ()
    """The flows that this process runs in dedicated mode; none for a Connect worker."""
