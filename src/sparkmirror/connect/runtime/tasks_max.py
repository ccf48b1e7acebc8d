"""How many tasks a connector may have: `tasks.max`, and whether it is enforced."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.tables.connector_config import CONNECTOR
from sparkmirror.errors import TooManyTasks

log = logging.getLogger(__name__)

TASKS_MAX: Final = "tasks.max"
TASKS_MAX_ENFORCE: Final = "tasks.max.enforce"
_TABLE: Final = ConfigDef(CONNECTOR[TASKS_MAX], CONNECTOR[TASKS_MAX_ENFORCE])


def tasks_max(config: Mapping[str, str]) -> int:
    """Return the highest number of tasks."""
    number = _TABLE.parse(config)[TASKS_MAX]
    assert isinstance(number, int)
    return number


def check_tasks_max(name: str, tasks: int, config: Mapping[str, str]) -> None:
    """Raise TooManyTasks if there are more. With `tasks.max.enforce=false`, only log it."""
    limit = tasks_max(config)
    if tasks <= limit:
        return
    error = TooManyTasks(name, tasks, limit)
    if _TABLE.parse(config)[TASKS_MAX_ENFORCE]:
        raise error
    log.warning(
        "The connector %s has generated %d tasks, which is greater than %d, the maximum number of "
        "tasks it is configured to create; tasks.max.enforce=false lets it",
        name, tasks, limit,
    )  # fmt: skip
