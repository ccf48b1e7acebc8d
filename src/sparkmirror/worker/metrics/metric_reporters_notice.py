"""What to say to an operator whose file names reporters of metrics, which are Java classes."""

from __future__ import annotations

import logging
from collections.abc import Mapping

log = logging.getLogger(__name__)

_KEY = "metric.reporters"


def reporters_notice(properties: Mapping[str, str]) -> str:
    """Return a sentence if the file names a reporter, with any prefix; empty if it names none."""
    named = sorted(
        {
            name.strip().rpartition(".")[2]
            for key, value in properties.items()
            if key == _KEY or key.endswith(f".{_KEY}")
            for name in value.split(",")
            if name.strip()
        }
    )
    if not named:
        return ""
    return (
        f"{_KEY} names {', '.join(named)}: no Java class reports metrics here, and there is no "
        "JMX. GET /metrics of the REST API has them as text for Prometheus; "
        "sparkmirror.metrics.listener opens a port of their own"
    )


def log_reporters_notice(properties: Mapping[str, str]) -> None:
    """Log the sentence, if there is one."""
    notice = reporters_notice(properties)
    if notice:
        log.info("%s", notice)
