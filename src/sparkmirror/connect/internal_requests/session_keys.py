"""The session key of a group of workers. The leader writes it, every worker signs with it.

leader      writes a key to the config topic: the first one, then one every
            `inter.worker.key.ttl.ms`, and one when its config asks for another kind of key
every worker signs and verifies with the last key that it has read. Before it refuses a signature,
            it reads the config topic to its end, once a second at most: the other worker may have
            read a later key already
"""

from __future__ import annotations

import base64
import binascii
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping

from sparkmirror.connect.internal_requests.inter_worker_settings import InterWorkerSettings
from sparkmirror.connect.internal_requests.request_signature import InternalRequestSignature
from sparkmirror.errors import BadRequest, ClusterError, Forbidden, WorkerStarting
from sparkmirror.mirror.connect_topics.connect_configs import SessionKey
from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)

REFRESH_INTERVAL_S = 1.0
"""Requests with wrong signatures make a worker read its config topic once in this time."""
SIGNATURE_MISSING = "Internal request missing required signature"
SIGNATURE_INVALID = "Internal request contained invalid signature."
NO_KEY = (
    "This worker is still starting up and has not been able to read a session key from the config"
    " topic yet"
)


class SessionKeys:
    """Signs, verifies and, on the leader, replaces the key. Any thread may sign and verify."""

    def __init__(
        self,
        configs: ConfigBackingStore,
        settings: InterWorkerSettings,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._configs = configs
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._next_refresh_at = 0.0

    def sign(self, signed: bytes) -> dict[str, str]:
        """Return the headers of a request. Raises WorkerStarting while no key is known."""
        key = self._require_key()
        algorithm = self._settings.signature_algorithm
        return InternalRequestSignature.sign(key, algorithm, signed).headers()

    def verify(self, headers: Mapping[str, str], signed: bytes) -> None:
        """Raise a RequestError with Connect's text, unless the signature is valid. May block."""
        signature = InternalRequestSignature.from_headers(headers)
        if signature is None:
            raise BadRequest(SIGNATURE_MISSING)
        if signature.algorithm not in self._settings.verification_algorithms:
            accepted = ", ".join(self._settings.verification_algorithms)
            raise BadRequest(
                f"This worker does not support the '{signature.algorithm}' key signing algorithm"
                f" used by other workers. This worker is currently configured to use: [{accepted}]."
                " Check that all workers' configuration files permit the same set of signature"
                " algorithms, and correct any misconfigured worker and restart it."
            )
        if signature.is_valid(self._require_key(), signed):
            return
        if not (self._has_later_key() and signature.is_valid(self._require_key(), signed)):
            raise Forbidden(SIGNATURE_INVALID)

    def _has_later_key(self) -> bool:
        """Read the config topic if that is due; return whether it has another key now."""
        with self._lock:
            now = self._clock()
            if now < self._next_refresh_at:
                return False
            self._next_refresh_at = now + REFRESH_INTERVAL_S
        try:
            return self.refresh()
        except ClusterError as error:
            log.warning("Cannot read a later session key from the config topic: %s", error)
            return False

    def refresh(self) -> bool:
        """Read the config topic to its end; return whether it has another key now. Blocks.

        Raises ClusterError.
        """
        before = self._configs.snapshot().session_key
        self._configs.refresh()
        return self._configs.snapshot().session_key != before

    def replace_expired_key(self) -> float | None:
        """Write a new key if one is needed. Requires the leader's write privileges. Blocks.

        Returns in how many seconds the key expires; None if it does not.
        """
        now_ms = int(self._clock() * 1000)
        key = self._configs.snapshot().session_key
        reason = reason_for_new_key(key, self._settings, now_ms)
        if key is None or reason:
            log.info("Distributing new session key: %s", reason)
            key = generate_session_key(self._settings, now_ms)
            self._configs.put_session_key(key)
        if not self._settings.key_ttl_ms:
            return None
        return max((key.created_ms + self._settings.key_ttl_ms - now_ms) / 1000, 0.0)

    def _require_key(self) -> SessionKey:
        key = self._configs.snapshot().session_key
        if key is None:
            raise WorkerStarting(NO_KEY)
        return key


def reason_for_new_key(key: SessionKey | None, settings: InterWorkerSettings, now_ms: int) -> str:
    """Return why the leader must write another key; empty if the present one stays."""
    if key is None:
        return "no session key has been distributed yet"
    if settings.key_ttl_ms and key.created_ms + settings.key_ttl_ms <= now_ms:
        return "the existing key has expired"
    if key.algorithm != settings.key_algorithm or _key_size(key) != settings.key_bytes:
        return "the existing key has another algorithm or size than this worker's config requires"
    return ""


def generate_session_key(settings: InterWorkerSettings, now_ms: int) -> SessionKey:
    """Return a random key of the configured kind."""
    encoded = base64.b64encode(secrets.token_bytes(settings.key_bytes)).decode("ascii")
    return SessionKey(key=encoded, algorithm=settings.key_algorithm, created_ms=now_ms)


def _key_size(key: SessionKey) -> int | None:
    """Return the size; None if the key is not base64."""
    try:
        return len(base64.b64decode(key.key))
    except binascii.Error:
        return None
