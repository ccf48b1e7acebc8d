"""A key of a Secret of Kubernetes."""

from __future__ import annotations

from typing import NamedTuple


class SecretKey(NamedTuple):
    """A key of a Secret, or of a ConfigMap."""

    secret: str
    key: str
