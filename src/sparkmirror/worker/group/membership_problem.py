"""What a worker tells of its place in its group: in its health and, each text once, in its log."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


class MembershipProblem:
    """The problem and the warning of one member. Any thread may read them."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self.problem = ""
        """Why this worker may not run yet; empty if it may."""
        self.warning = ""
        """Why this worker would not notice another one; empty if it would."""

    def wait_for(self, problem: str, level: int = logging.WARNING) -> None:
        """Set the problem that keeps the worker out of its group."""
        if problem != self.problem:
            log.log(level, "%s", problem)
        self.problem = problem

    def warn(self, text: str) -> None:
        """Set the warning; an empty text ends it."""
        if text and text != self.warning:
            log.warning("%s", text)
        elif self.warning and not text:
            log.info("Group %s: the worker is a member and notices others", self._group_id)
        self.warning = text
