"""A warning about settings is logged once in a process."""

from __future__ import annotations

import logging
import secrets

import pytest

from sparkmirror.cli.config.start_validation import without_log_lines
from sparkmirror.config.warn_once import warn_once

log = logging.getLogger(__name__)


def test_a_warning_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    message = f"the store {secrets.token_hex(4)} has another type"
    for _ in range(3):
        warn_once(log, message)
    assert caplog.messages == [message]


def test_a_warning_of_a_validation_without_log_lines_is_logged_by_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before, inside = (f"the store {secrets.token_hex(4)}" for _ in range(2))
    warn_once(log, before)
    with without_log_lines():
        warn_once(log, inside)
        warn_once(log, inside)
    caplog.clear()
    for message in (before, inside, inside):
        warn_once(log, message)
    assert caplog.messages == [inside]
