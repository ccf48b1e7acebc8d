"""An event loop: one thread, many sockets, and background threads for blocking work.

The loop watches channels and calls them back. Blocking work (opening a connection, requesting
metadata) runs in background threads, and its result is delivered in the loop's thread. So all other
code of a task or of the control server is single-threaded and needs no lock.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from sparkmirror.errors import ClusterError, MirrorError

T = TypeVar("T")

BACKGROUND_THREADS: Final = 4
MAX_READ_WITHOUT_SELECT: Final = 3
"""From so many channels a loop reads without asking the system whether they have anything."""


class SelectableChannel(Protocol):
    """A socket that handles its own events."""

    def fileno(self) -> int:
        """Return the file descriptor for the selector."""
        ...

    @property
    def wants_write(self) -> bool:
        """Whether the loop must wait until the socket is writable."""
        ...

    def on_readable(self) -> None:
        """Receive what is there, maybe nothing. Raises a MirrorError if the connection is lost."""
        ...

    def on_writable(self) -> None:
        """Send. Raises a MirrorError if the connection is lost."""
        ...


@dataclass(slots=True)
class _Registration:
    channel: SelectableChannel
    on_lost: Callable[[MirrorError], None]
    mask: int
    is_urgent: bool


class EventLoop:
    """Selector, wake-up pipe and background threads."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._urgent_selector = selectors.DefaultSelector()
        """Watches the urgent channels for reading."""
        self._registrations: dict[SelectableChannel, _Registration] = {}
        self._wakeup_reader, self._wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup_reader, False)
        os.set_blocking(self._wakeup_writer, False)
        for selector in (self._selector, self._urgent_selector):
            selector.register(self._wakeup_reader, selectors.EVENT_READ, None)
        self._executor = ThreadPoolExecutor(BACKGROUND_THREADS, thread_name_prefix="copy")
        self._pending_calls: deque[Callable[[], None]] = deque()
        self._thread_id = -1
        """The thread of the last turn: it sees the pending calls before it waits."""

    def register(
        self,
        channel: SelectableChannel,
        on_lost: Callable[[MirrorError], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        """Watch a channel from now on; call `on_lost` once if it fails.

        Events of a channel that is not urgent wait if the caller of `run_once` allows it.
        """
        self._selector.register(channel, selectors.EVENT_READ, channel)
        if is_urgent:
            self._urgent_selector.register(channel, selectors.EVENT_READ, channel)
        self._registrations[channel] = _Registration(
            channel, on_lost, selectors.EVENT_READ, is_urgent
        )

    def unregister(self, channel: SelectableChannel) -> None:
        """Stop watching a channel. May be called again."""
        registration = self._registrations.pop(channel, None)
        if registration is not None:
            self._selector.unregister(channel)
            if registration.is_urgent:
                self._urgent_selector.unregister(channel)

    def run_in_executor(
        self,
        work: Callable[[], T],
        on_result: Callable[[T], None],
        on_error: Callable[[MirrorError], None],
    ) -> None:
        """Run blocking work in another thread; call back in the loop's thread."""

        def deliver(future: Future[T]) -> None:
            self.call_soon(lambda: _deliver_result(future, on_result, on_error))

        self._executor.submit(work).add_done_callback(deliver)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call the callback in the loop's thread at its next turn. Any thread may call this."""
        self._pending_calls.append(callback)
        if threading.get_ident() != self._thread_id:
            self._wake()

    def run_once(self, timeout_s: float, urgent_only_s: float = 0.0) -> int:
        """Wait for events, at most `timeout_s`, and handle them.

        For the first `urgent_only_s` only urgent channels and calls of other threads end the wait,
        unless a channel wants to write. Returns how many channels were handled or read and how many
        callbacks were called, together.
        """
        self._thread_id = threading.get_ident()
        is_writing = self._update_interest()
        if min(urgent_only_s, timeout_s) > 0 and not (self._pending_calls or is_writing):
            begun = time.monotonic()
            ready = self._urgent_selector.select(min(urgent_only_s, timeout_s))
            if ready:
                return self._handle(ready) + self._read_other_channels()
            timeout_s -= time.monotonic() - begun
        return self._handle(self._selector.select(0 if self._pending_calls else max(timeout_s, 0)))

    def close(self) -> None:
        """Close the selector. Background work that has begun ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._selector.close()
        self._urgent_selector.close()
        for descriptor in (self._wakeup_reader, self._wakeup_writer):
            os.close(descriptor)
        self._wakeup_writer = -1

    def run_guarded(self, channel: SelectableChannel, action: Callable[[], None]) -> None:
        """Run an action of a channel. A ClusterError unregisters it and calls its `on_lost`."""
        registration = self._registrations.get(channel)
        try:
            action()
        except ClusterError as error:
            self.unregister(channel)
            if registration:
                registration.on_lost(error)

    def _handle(self, ready: Sequence[tuple[selectors.SelectorKey, int]]) -> int:
        handled = self._run_pending_calls()  # they are older than the events
        for key, mask in ready:
            if key.data is None:
                self._drain_wakeups()
            else:
                self._dispatch(key.data, mask)
                handled += 1
        return handled + self._run_pending_calls()

    def _read_other_channels(self) -> int:
        """Read from the channels that are not urgent. For a few that is cheaper than to ask."""
        others = [one.channel for one in self._registrations.values() if not one.is_urgent]
        if len(others) > MAX_READ_WITHOUT_SELECT:
            return self._handle(self._selector.select(0))
        for channel in others:
            self._dispatch(channel, selectors.EVENT_READ)
        return len(others)

    def _run_pending_calls(self) -> int:
        called = 0
        while self._pending_calls:
            self._pending_calls.popleft()()
            called += 1
        return called

    def _dispatch(self, channel: SelectableChannel, mask: int) -> None:
        if channel not in self._registrations:
            return
        if mask & selectors.EVENT_WRITE:
            self.run_guarded(channel, channel.on_writable)
        if mask & selectors.EVENT_READ and channel in self._registrations:
            self.run_guarded(channel, channel.on_readable)

    def _update_interest(self) -> bool:
        """Watch the channels for what they want; return whether one of them wants to write."""
        is_writing = False
        for registration in self._registrations.values():
            channel = registration.channel
            mask = selectors.EVENT_READ
            if channel.wants_write:
                mask, is_writing = mask | selectors.EVENT_WRITE, True
            if mask != registration.mask:
                registration.mask = mask
                self._selector.modify(channel, mask, channel)
        return is_writing

    def _wake(self) -> None:
        if self._wakeup_writer >= 0:
            try:
                os.write(self._wakeup_writer, b"!")
            except (BlockingIOError, OSError):
                return  # a full pipe wakes the loop anyway; a closed loop needs no wake-up

    def _drain_wakeups(self) -> None:
        while True:
            try:
                if len(os.read(self._wakeup_reader, 4096)) < 4096:
                    return
            except BlockingIOError:
                return


def _deliver_result(
    future: Future[T], on_result: Callable[[T], None], on_error: Callable[[MirrorError], None]
) -> None:
    """Call back with the result or the MirrorError. Any other exception is a bug and is raised."""
    try:
        result = future.result()
    except MirrorError as error:
        on_error(error)
    else:
        on_result(result)
