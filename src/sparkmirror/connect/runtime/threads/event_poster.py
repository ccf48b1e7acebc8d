"""Carries events of connectors and tasks from any thread to the herder thread, in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ParamSpec

from sparkmirror.connect.runtime.threads.herder_thread import HerderAction, HerderThread

Arguments = ParamSpec("Arguments")


class EventPoster:
    """Calls event handlers on the herder thread until it is closed. Any thread may post."""

    def __init__(self, herder_thread: HerderThread) -> None:
        self._herder_thread = herder_thread
        self._is_closed = False

    def post(
        self,
        handler: Callable[Arguments, None],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> None:
        """Have the herder thread call the handler with these arguments. Does not block."""
        self._herder_thread.submit(partial(self._deliver, partial(handler, *args, **kwargs)))

    def close(self) -> None:
        """Drop every event that the herder thread has not handled yet, and all later ones."""
        self._is_closed = True

    def _deliver(self, action: HerderAction) -> None:
        if not self._is_closed:
            action()
