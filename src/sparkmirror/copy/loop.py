"""The loop of a task: one thread, many sockets, and a few helpers for what would block.

Watches channels and calls back; runs blocking work (opening a connection, asking for metadata) in
background threads and brings the outcome back into the loop, so that everything else in a task is
single-threaded and needs no lock. Knows nothing of partitions.
"""

from __future__ import annotations

import os
import selectors
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sparkmirror.errors import ClusterError, MirrorError

T = TypeVar("T")

BACKGROUND_THREADS = 4


class Watchable(Protocol):
    """A socket that knows what to do when something can be done."""

    def fileno(self) -> int:
        """For the selector."""
        ...

    @property
    def wants_write(self) -> bool:
        """Whether to watch for writing too."""
        ...

    def on_readable(self) -> None:
        """Receive; raises a MirrorError when the socket is lost."""
        ...

    def on_writable(self) -> None:
        """Send; raises a MirrorError when the socket is lost."""
        ...


@dataclass(slots=True)
class _Watch:
    channel: Watchable
    lost: Callable[[MirrorError], None]
    mask: int


class Loop:
    """Selector, wake-up and background work of one task."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._watches: dict[Watchable, _Watch] = {}
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self._selector.register(self._wake_out, selectors.EVENT_READ, None)
        self._background = ThreadPoolExecutor(BACKGROUND_THREADS, thread_name_prefix="copy")
        self._finished: deque[Callable[[], None]] = deque()

    def watch(self, channel: Watchable, lost: Callable[[MirrorError], None]) -> None:
        """Serve a channel from now on; `lost` is told once if it ends in an error."""
        self._selector.register(channel, selectors.EVENT_READ, channel)
        self._watches[channel] = _Watch(channel, lost, selectors.EVENT_READ)

    def forget(self, channel: Watchable) -> None:
        """Serve a channel no longer. May be called again."""
        if self._watches.pop(channel, None) is not None:
            self._selector.unregister(channel)

    def in_background(
        self,
        work: Callable[[], T],
        then: Callable[[T], None],
        failed: Callable[[MirrorError], None],
    ) -> None:
        """Do blocking work in another thread, and go on in the loop with its outcome."""

        def deliver(future: Future[T]) -> None:
            self.soon(lambda: _settle(future, then, failed))

        self._background.submit(work).add_done_callback(deliver)

    def soon(self, step: Callable[[], None]) -> None:
        """Have something done in the loop, at its next turn. Any thread may ask."""
        self._finished.append(step)
        self._wake()

    def turn(self, timeout_s: float) -> None:
        """Wait for something to do, at most so long, and do it."""
        self._watch_for_writing()
        ready = self._selector.select(0 if self._finished else max(timeout_s, 0))
        self._do_what_was_asked()  # before anything that was said later than it was asked
        for key, mask in ready:
            if key.data is None:
                self._drain_wakes()
            else:
                self._serve(key.data, mask)
        self._do_what_was_asked()

    def close(self) -> None:
        """Stop serving. Background work that is under way is left to end by itself."""
        self._background.shutdown(wait=False, cancel_futures=True)
        self._selector.close()
        for end in (self._wake_out, self._wake_in):
            os.close(end)
        self._wake_in = -1

    def guard(self, channel: Watchable, act: Callable[[], None]) -> None:
        """Do something with a channel that may end it."""
        watch = self._watches.get(channel)
        try:
            act()
        except ClusterError as error:
            self.forget(channel)
            if watch:
                watch.lost(error)

    def _do_what_was_asked(self) -> None:
        while self._finished:
            self._finished.popleft()()

    def _serve(self, channel: Watchable, mask: int) -> None:
        if channel not in self._watches:
            return
        if mask & selectors.EVENT_WRITE:
            self.guard(channel, channel.on_writable)
        if mask & selectors.EVENT_READ and channel in self._watches:
            self.guard(channel, channel.on_readable)

    def _watch_for_writing(self) -> None:
        for watch in self._watches.values():
            mask = selectors.EVENT_READ | (
                selectors.EVENT_WRITE if watch.channel.wants_write else 0
            )
            if mask != watch.mask:
                watch.mask = mask
                self._selector.modify(watch.channel, mask, watch.channel)

    def _wake(self) -> None:
        if self._wake_in >= 0:
            try:
                os.write(self._wake_in, b"!")
            except (BlockingIOError, OSError):
                return  # full means awake; closed means nobody is waiting any more

    def _drain_wakes(self) -> None:
        while True:
            try:
                if len(os.read(self._wake_out, 4096)) < 4096:
                    return
            except BlockingIOError:
                return


def _settle(
    future: Future[T], then: Callable[[T], None], failed: Callable[[MirrorError], None]
) -> None:
    """Go on with the outcome. Anything but one of our own errors is a bug and ends the task."""
    try:
        outcome = future.result()
    except MirrorError as error:
        failed(error)
    else:
        then(outcome)
