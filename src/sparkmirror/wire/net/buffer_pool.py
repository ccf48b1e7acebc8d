"""Memory for responses: allocated, counted, released, used again.

A response is received into a frame, and the record batches in it are sent from there. So the memory
must not change until the last batch is acknowledged. After that it is used again: new megabytes
cost page faults.

Invariants:
    A  a frame has a positive count of holders from its allocation until its only deallocation
    B  memory is used again only if no view of it exists, whatever the count says
    C  a budget's `used` is what was reserved and not released; it is never negative

The count of holders decides when memory returns to the pool. B is checked in addition, at the next
allocation: a bytearray refuses to change its length while a view of it exists. A pool belongs to
one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

MIN_POOLED_BYTES: Final = 1 << 14
"""Smaller frames are not kept: acknowledgements, metadata."""
MAX_IDLE_BYTES: Final = 1 << 26
"""The most idle memory that a pool keeps."""


class MemoryBudget:
    """A limit on bytes in use."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @property
    def available(self) -> int:
        """How many bytes may still be reserved; not negative."""
        return max(self.limit - self.used, 0)

    def reserve(self, size: int) -> None:
        """Count bytes as used, also beyond the limit."""
        self.used += size

    def release(self, size: int) -> None:
        """Return reserved bytes. Raises ValueError for more than was reserved."""
        if size > self.used:
            raise ValueError(f"{size} bytes released, but only {self.used} are reserved")
        self.used -= size


class ResponseFrame:
    """The bytes of one response. A caller that keeps a part of it retains the frame meanwhile."""

    __slots__ = ("_holders", "_memory", "_pool", "size", "view")

    def __init__(self, memory: bytearray, size: int, pool: BufferPool) -> None:
        self.size = size
        self.view = memoryview(memory)[:size]
        self._memory = memory
        self._pool = pool
        self._holders = 1

    def retain(self) -> None:
        """Keep the bytes unchanged until one more release."""
        if self._holders == 0:
            raise ValueError("the frame is deallocated: its memory may hold another response")
        self._holders += 1

    def keep(self, content: bytearray) -> tuple[memoryview, Callable[[], None]]:
        """Reserve memory for bytes made from the frame; return them and what releases them.

        Large ones are copied to memory of the pool, which is cheaper than new memory for each.
        """
        size = len(content)
        if size < MIN_POOLED_BYTES:
            self._pool.budget.reserve(size)
            return memoryview(content), partial(self._pool.budget.release, size)
        frame = self._pool.allocate(size)
        frame.view[:] = content
        return frame.view[:], frame.release

    def release(self) -> None:
        """Drop one holder. The last release returns the memory to the pool."""
        if self._holders == 0:
            raise ValueError("the frame is deallocated already")
        self._holders -= 1
        if self._holders == 0:
            self.view.release()
            self._pool.deallocate(self._memory, self.size)


class BufferPool:
    """Allocates frames and keeps their memory for later ones, by powers of two."""

    def __init__(
        self, budget: MemoryBudget | None = None, *, max_idle_bytes: int = MAX_IDLE_BYTES
    ) -> None:
        self.budget = budget or MemoryBudget(0)
        self._max_idle_bytes = max_idle_bytes
        self.idle_bytes = 0
        self._idle: dict[int, list[bytearray]] = {}

    def allocate(self, size: int) -> ResponseFrame:
        """Return a frame of this size. Its bytes are undefined."""
        self.budget.reserve(size)
        if size < MIN_POOLED_BYTES:
            return ResponseFrame(bytearray(size), size, self)
        capacity = 1 << (size - 1).bit_length()
        return ResponseFrame(self._pop_idle(capacity) or bytearray(capacity), size, self)

    def deallocate(self, memory: bytearray, size: int) -> None:
        """Take back the memory of a frame. Called by the last release."""
        self.budget.release(size)
        capacity = len(memory)
        if size < MIN_POOLED_BYTES or self.idle_bytes + capacity > self._max_idle_bytes:
            return
        self.idle_bytes += capacity
        self._idle.setdefault(capacity, []).append(memory)

    def _pop_idle(self, capacity: int) -> bytearray | None:
        """Return idle memory of this size without views, the most recently used first."""
        idle = self._idle.get(capacity, [])
        for index in range(len(idle) - 1, -1, -1):
            if has_no_views(idle[index]):
                self.idle_bytes -= capacity
                return idle.pop(index)
        return None


def has_no_views(memory: bytearray) -> bool:
    """Whether no view of the memory exists: only then does a bytearray change its length.

    It shrinks by one byte and grows again within what is allocated, so nothing moves.
    """
    try:
        memory.append(memory.pop())
    except BufferError:
        return False
    return True
