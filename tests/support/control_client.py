"""A client of the control channel for tests: says what it is told, keeps what it hears."""

from __future__ import annotations

import select
import time
from types import TracebackType
from typing import Self, TypeVar

from sparkmirror.copy.link import Link
from sparkmirror.copy.messages import Hello, Message
from sparkmirror.engine.post import Post

M = TypeVar("M", bound=Message)


def hello(task: int, attempt: int = 0) -> Hello:
    """A task attempt's hello."""
    return Hello(task=task, attempt=attempt, host="here", pid=1)


class ControlClient:
    """One connection to a control server."""

    def __init__(self, post: Post) -> None:
        self.heard: list[Message] = []
        self._link = Link.connect(post.address, post.secret, self.heard.append)

    def say(self, *messages: Message) -> None:
        """Say these."""
        for message in messages:
            self._link.send(message)

    def hear(self, kind: type[M], within_s: float = 50.0) -> M:
        """Wait for the next message of a kind; what comes before it is dropped."""
        deadline = time.monotonic() + within_s
        while True:
            while self.heard:
                message = self.heard.pop(0)
                if isinstance(message, kind):
                    return message
            if not select.select([self._link], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise AssertionError(f"no {kind.__name__} within {within_s:.0f} s")
            self._link.on_readable()

    def finish(self) -> None:
        """Hang up as a task does."""
        self._link.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._link.close()
