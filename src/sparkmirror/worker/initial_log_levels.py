"""Log levels with which a process starts: the variable `SPARKMIRROR_LOG_LEVELS`.

    SPARKMIRROR_LOG_LEVELS=root=WARN,org.apache.kafka.connect.mirror=DEBUG

Names are those of `/admin/loggers`. The image sets it from `CONNECT_LOG4J_ROOT_LOGLEVEL` and
`CONNECT_LOG4J_LOGGERS`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.connect.herder.log_levels import LEVELS, LogLevels, has_loggers
from sparkmirror.logging_context import LEVELS_VARIABLE

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialLogLevels:
    """Levels by name, and a sentence for each part of the variable that has no effect."""

    levels: Mapping[str, str] = field(repr=False)
    notices: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> InitialLogLevels:
        """Read the variable. A part that cannot be read is left out."""
        levels: dict[str, str] = {}
        notices: list[str] = []
        for part in environment.get(LEVELS_VARIABLE, "").split(","):
            name, sign, level = (word.strip() for word in part.partition("="))
            if not name and not sign:
                continue
            if not name or level.upper() not in LEVELS:
                notices.append(
                    f"{LEVELS_VARIABLE}: '{part.strip()}' has no effect, write NAME=LEVEL with one "
                    f"of the levels {', '.join(LEVELS)}."
                )
            elif not has_loggers(name):
                notices.append(
                    f"{LEVELS_VARIABLE}: {name} has no effect, no logger has this name; "
                    "GET /admin/loggers lists them."
                )
            else:
                levels[name] = level.upper()
        return cls(levels=levels, notices=tuple(notices))


def create_log_levels(environment: Mapping[str, str]) -> LogLevels:
    """Set the levels of the variable, and log what has no effect. Call it once per process."""
    initial = InitialLogLevels.of(environment)
    for notice in initial.notices:
        log.warning("%s", notice)
    return LogLevels(known=initial.levels)
