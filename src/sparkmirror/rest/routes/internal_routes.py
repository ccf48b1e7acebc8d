"""Two requests that Connect workers of one group send each other, signed with a session key.

    POST /connectors/{c}/tasks, PUT /connectors/{c}/fence       a Connect worker
    the same after /{source}/{target}                           dedicated mode, one group per flow

This worker accepts no task configs from other workers and fences producers itself, so no signature
is valid. Every request gets Connect's error for its signature, and needs no password.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection

from sparkmirror.errors import BadRequest, Forbidden, NotFound
from sparkmirror.model import SourceAndTarget
from sparkmirror.rest.http.call import Call, Reply
from sparkmirror.rest.http.router import Handler, Route

_SIGNATURE = "x-connect-authorization"
_ALGORITHM = "x-connect-request-signature-algorithm"


def internal_routes(flows: Collection[SourceAndTarget]) -> tuple[Route, ...]:
    """The routes that workers use among each other; with flows, those of dedicated mode."""
    if not flows:
        return _routes("", _reject)

    def reject(call: Call) -> Reply:
        source, target = call.path_parameters["source"], call.path_parameters["target"]
        if SourceAndTarget(source, target) not in flows:
            raise NotFound(f"No replication flow found for source '{source}' and target '{target}'")
        return _reject(call)

    return _routes("/{source}/{target}", reject)


def _routes(flow: str, handler: Handler) -> tuple[Route, ...]:
    one = f"{flow}/connectors/{{connector}}"
    return (
        Route(method="POST", path=f"{one}/tasks", handler=handler, signed=True),
        Route(method="PUT", path=f"{one}/fence", handler=handler, signed=True),
    )


def _reject(call: Call) -> Reply:
    signature = call.headers.get(_SIGNATURE)
    if signature is None or _ALGORITHM not in call.headers:
        raise BadRequest("Internal request missing required signature")
    try:
        base64.b64decode(signature, validate=True)
    except binascii.Error:
        raise BadRequest("Internal request contained a signature that is not base64") from None
    raise Forbidden("Internal request contained invalid signature.")
