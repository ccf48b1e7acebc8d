"""What does not work in one connector now, by its origin: a cluster, or a job of the connector.

The context gets one text with all of it, whenever that text changes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from sparkmirror.connect.connector import ConnectorContext


class ConnectorProblems:
    """The current problems of one connector. Several threads may share it."""

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._by_origin: dict[str, str] = {}
        self._reported = ""

    @property
    def text(self) -> str:
        """All problems as one text; empty if there is none."""
        with self._lock:
            return self._join()

    def update(self, problems: Mapping[str, str]) -> None:
        """Set the problems of these origins, and report the text if it has changed.

        An empty text removes the problem of its origin.
        """
        with self._lock:
            self._by_origin |= problems
            text = self._join()
            has_changed, self._reported = text != self._reported, text
            if has_changed:
                self._context.report_problem(text)

    def _join(self) -> str:
        texts = {text for text in self._by_origin.values() if text}
        return "; ".join(sorted(texts))
