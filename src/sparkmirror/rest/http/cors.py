"""CORS: which web pages may call this API from a browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_DEFAULT_METHODS = "GET,POST,HEAD"
_MAX_AGE_S = "60"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cors:
    """`access.control.allow.origin` and `.methods`. An empty origin allows no page."""

    origin: str = ""
    methods: str = ""

    def headers(self, method: str, request: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Return the CORS headers of the response. The browser decides by them."""
        if not self.origin:
            return ()
        vary = (("Vary", "Origin"),)
        origin = request.get("origin")
        if origin is None or (self.origin != "*" and origin not in self._origins):
            return vary
        allowed = (*vary, ("Access-Control-Allow-Origin", origin))
        if method != "OPTIONS" or "access-control-request-method" not in request:
            return allowed
        return (
            *allowed,
            ("Access-Control-Allow-Methods", self.methods or _DEFAULT_METHODS),
            ("Access-Control-Allow-Headers", "Content-Type"),
            ("Access-Control-Max-Age", _MAX_AGE_S),
        )

    @property
    def _origins(self) -> list[str]:
        return [origin.strip() for origin in self.origin.split(",")]
