"""Bearer tokens (RFC 6750) from a file of `name: token` lines.

A token is written as it is, or as `sha256:` and the hash of it in hexadecimal digits. The file is
read again when it has changed, so an operator adds and revokes tokens without a restart. While it
cannot be read, no token is accepted. The server keeps hashes only and compares them in constant
time.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from collections.abc import Mapping
from pathlib import Path

from sparkmirror.config.files import properties
from sparkmirror.errors import ConfigError, MirrorError

log = logging.getLogger(__name__)

KEY = "sparkmirror.rest.bearer.tokens.file"
CHECK_INTERVAL_S = 1.0
MIN_TOKEN_CHARACTERS = 16
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_HASH = re.compile(r"sha256:([0-9a-fA-F]{64})")

_FileVersion = tuple[int, int, int]
"""Modification time, size and inode."""


class BearerTokens:
    """The tokens of a file, by the name of their owner."""

    def __init__(self, file: Path) -> None:
        """Read the file. Raises ConfigError."""
        self._file = file
        self._version = _file_version(file)
        self._hashes = read_token_hashes(file)
        self._check_at = time.monotonic() + CHECK_INTERVAL_S

    def __repr__(self) -> str:
        return f"BearerTokens({len(self._hashes)})"

    def authenticate(self, authorization: str | None) -> str | None:
        """Return the name of the token in an Authorization header; None if it has none."""
        self._read_changed_file(time.monotonic())
        scheme, _, token = (authorization or "").partition(" ")
        given = hashlib.sha256(token.strip().encode("utf-8")).digest()
        # All hashes are compared, so that the time does not show which one is like the given one.
        matching = [
            name for name, known in self._hashes.items() if hmac.compare_digest(known, given)
        ]
        return matching[0] if matching and scheme.lower() == "bearer" else None

    def _read_changed_file(self, now: float) -> None:
        if now < self._check_at:
            return
        self._check_at = now + CHECK_INTERVAL_S
        version = _file_version(self._file)
        if version == self._version:
            return
        self._version = version
        try:
            self._hashes = read_token_hashes(self._file)
        except MirrorError as error:
            self._hashes = {}
            log.error("REST server accepts no bearer token until the file is corrected: %s", error)
        else:
            log.info("REST server has read %s again: %d tokens", self._file, len(self._hashes))


def read_token_hashes(file: Path) -> Mapping[str, bytes]:
    """Read the hashes of the tokens of a file, by name. Raises ConfigError."""
    entries = properties.load_properties(file).mapping
    if not entries:
        raise _config_error(f"the file of tokens {file} is empty; add at least one name: token")
    return {name: _token_hash(name, token, file) for name, token in entries.items()}


def _token_hash(name: str, token: str, file: Path) -> bytes:
    hashed = _HASH.fullmatch(token)
    if hashed is not None:
        return bytes.fromhex(hashed[1])
    if len(token) < MIN_TOKEN_CHARACTERS or not _TOKEN.fullmatch(token):
        raise _config_error(
            f"the token of {name} in {file} is not of {MIN_TOKEN_CHARACTERS} or more letters,"
            " digits and -._~+/"
        )
    return hashlib.sha256(token.encode("ascii")).digest()


def _file_version(file: Path) -> _FileVersion | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _config_error(message: str) -> ConfigError:
    return ConfigError.of(KEY, f"{KEY}: {message}")
