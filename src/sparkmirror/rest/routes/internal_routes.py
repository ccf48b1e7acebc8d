"""Two requests that Connect workers of one group send each other, signed with a session key.

    POST /connectors/{c}/tasks, PUT /connectors/{c}/fence       a Connect worker
    the same after /{source}/{target}                           dedicated mode, one group per flow

This worker takes no task configs from others and fences by itself, so no signature can be right;
but whoever knocks is answered in Connect's words, and never logs in for it.
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
    """Make the routes that only workers would use; with flows, those of dedicated mode."""
    if not flows:
        return _routes("", _reject)

    def refuse(call: Call) -> Reply:
        source, target = call.path_parameters["source"], call.path_parameters["target"]
        if SourceAndTarget(source, target) not in flows:
            raise NotFound(f"No replication flow found for source '{source}' and target '{target}'")
        return _reject(call)

    return _routes("/{source}/{target}", refuse)


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
