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


class SelectableChannel(Protocol):
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
class _Registration:
    channel: SelectableChannel
    on_lost: Callable[[MirrorError], None]
    mask: int


class EventLoop:
    """Selector, wake-up and background work of one task."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._registrations: dict[SelectableChannel, _Registration] = {}
        self._wakeup_reader, self._wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup_reader, False)
        os.set_blocking(self._wakeup_writer, False)
        self._selector.register(self._wakeup_reader, selectors.EVENT_READ, None)
        self._executor = ThreadPoolExecutor(BACKGROUND_THREADS, thread_name_prefix="copy")
        self._pending_calls: deque[Callable[[], None]] = deque()

    def register(self, channel: SelectableChannel, lost: Callable[[MirrorError], None]) -> None:
        """Serve a channel from now on; `lost` is told once if it ends in an error."""
        self._selector.register(channel, selectors.EVENT_READ, channel)
        self._registrations[channel] = _Registration(channel, lost, selectors.EVENT_READ)

    def unregister(self, channel: SelectableChannel) -> None:
        """Serve a channel no longer. May be called again."""
        if self._registrations.pop(channel, None) is not None:
            self._selector.unregister(channel)

    def run_in_executor(
        self,
        work: Callable[[], T],
        then: Callable[[T], None],
        failed: Callable[[MirrorError], None],
    ) -> None:
        """Do blocking work in another thread, and go on in the loop with its outcome."""

        def deliver(future: Future[T]) -> None:
            self.call_soon(lambda: _deliver_result(future, then, failed))

        self._executor.submit(work).add_done_callback(deliver)

    def call_soon(self, step: Callable[[], None]) -> None:
        """Have something done in the loop, at its next turn. Any thread may ask."""
        self._pending_calls.append(step)
        self._wake()

    def run_once(self, timeout_s: float) -> None:
        """Wait for something to do, at most so long, and do it."""
        self._update_interest()
        ready = self._selector.select(0 if self._pending_calls else max(timeout_s, 0))
        self._run_pending_calls()  # before anything that was said later than it was asked
        for key, mask in ready:
            if key.data is None:
                self._drain_wakeups()
            else:
                self._dispatch(key.data, mask)
        self._run_pending_calls()

    def close(self) -> None:
        """Stop serving. Background work that is under way is left to end by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._selector.close()
        for end in (self._wakeup_reader, self._wakeup_writer):
            os.close(end)
        self._wakeup_writer = -1

    def run_guarded(self, channel: SelectableChannel, act: Callable[[], None]) -> None:
        """Do something with a channel that may end it."""
        watch = self._registrations.get(channel)
        try:
            act()
        except ClusterError as error:
            self.unregister(channel)
            if watch:
                watch.on_lost(error)

    def _run_pending_calls(self) -> None:
        while self._pending_calls:
            self._pending_calls.popleft()()

    def _dispatch(self, channel: SelectableChannel, mask: int) -> None:
        if channel not in self._registrations:
            return
        if mask & selectors.EVENT_WRITE:
            self.run_guarded(channel, channel.on_writable)
        if mask & selectors.EVENT_READ and channel in self._registrations:
            self.run_guarded(channel, channel.on_readable)

    def _update_interest(self) -> None:
        for watch in self._registrations.values():
            mask = selectors.EVENT_READ | (
                selectors.EVENT_WRITE if watch.channel.wants_write else 0
            )
            if mask != watch.mask:
                watch.mask = mask
                self._selector.modify(watch.channel, mask, watch.channel)

    def _wake(self) -> None:
        if self._wakeup_writer >= 0:
            try:
                os.write(self._wakeup_writer, b"!")
            except (BlockingIOError, OSError):
                return  # full means awake; closed means nobody is waiting any more

    def _drain_wakeups(self) -> None:
        while True:
            try:
                if len(os.read(self._wakeup_reader, 4096)) < 4096:
                    return
            except BlockingIOError:
                return


def _deliver_result(
    future: Future[T], then: Callable[[T], None], failed: Callable[[MirrorError], None]
) -> None:
    """Go on with the outcome. Anything but one of our own errors is a bug and ends the task."""
    try:
        outcome = future.result()
    except MirrorError as error:
        failed(error)
    else:
        then(outcome)
