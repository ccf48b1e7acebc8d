"""Options of the REST server: limits, users, tokens, TLS, CORS, response headers, other workers."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sparkmirror.metrics.definition import Figure
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.authentication.bearer_tokens import BearerTokens
from sparkmirror.rest.client.rest_client import RestClient
from sparkmirror.rest.http.cors import Cors
from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.http.response_headers import ResponseHeaderRules
from sparkmirror.rest.worker_group_access import NO_GROUP, WorkerGroupAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class RestLimits:
    """Limits on the size, the time and the number of requests."""

    max_body_bytes: int = 8 * 1024 * 1024
    headers_timeout_s: float = 10.0
    """From the first byte of a request, or from the start of the connection, to its last header.

    A body that arrives after its response is discarded for this time at most.
    """
    body_timeout_s: float = 30.0
    request_timeout_s: float = 95.0
    """Longer than the herder's own timeout of 90 s, whose error says what it waited for."""
    health_timeout_s: float = 12.0
    """Longer than the herder's own timeout of 10 s, whose error says how far the start is."""
    keep_alive_s: int = 30
    """How long an idle connection stays open for another request."""
    max_concurrent_requests: int = 64
    """How many handlers run at a time. Other requests wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestOptions:
    """Everything but the listeners."""

    admin_listeners: tuple[RestListener, ...] | None = None
    """The listeners of /admin. None: the ordinary listeners serve it. Empty: it is not served."""
    tls: ssl.SSLContext | None = None
    admin_tls: ssl.SSLContext | None = None
    metrics_listeners: tuple[RestListener, ...] = ()
    """Listeners that serve the metrics and nothing else."""
    get_figures: Callable[[], Iterable[Figure]] | None = None
    """Returns the figures of the worker. None: no metrics are served."""
    users: BasicAuthUsers | None = None
    tokens: BearerTokens | None = None
    cors: Cors = field(default_factory=Cors)
    response_headers: ResponseHeaderRules = field(
        default_factory=lambda: ResponseHeaderRules((), time.time)
    )
    limits: RestLimits = field(default_factory=RestLimits)
    access_log: bool = True
    client: RestClient = field(default_factory=RestClient)
    """Sends requests to other workers of the group."""
    groups: Mapping[SourceAndTarget | None, WorkerGroupAccess] = field(
        default_factory=lambda: {None: NO_GROUP}
    )
    """The groups of workers that this process belongs to: in dedicated mode one for each flow, else
    one with the key None."""
