"""JSON requests to a Connect worker that must succeed."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 90.0


def call_json(url: str, method: str, path: str, body: Any = None) -> Any:
    """Send a request and return the JSON of its response. Fails if the status is an error."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    assert answer.status < http.HTTPStatus.BAD_REQUEST, f"{method} {path}: {content!r}"
    return json.loads(content) if content else None


def get_json(url: str, path: str) -> Any:
    """GET."""
    return call_json(url, "GET", path)
