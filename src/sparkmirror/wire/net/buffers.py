"""Memory for answers: lent out, counted, given back, used again.

An answer is received into a Frame, and the record batches in it are sent on from where they lie.
So its memory must stay untouched until the last of them is acknowledged, and should then be used
again: fresh megabytes cost page faults.

Invariants:
    A  a frame has holders from the moment it is lent until it is given back, once
    B  memory is lent again only if no view of it is left, whatever its holders said
    C  a budget's `used` is what was taken and not given back, and never negative

The count of holders decides when memory comes back; B is checked besides, when it is lent again: a
bytearray refuses to change its length while any view of it is alive, wherever that view is. A pool
belongs to one thread.
"""

from __future__ import annotations

MIN_POOLED_BYTES = 1 << 14
"""Below this a frame is not worth keeping: acknowledgements, metadata."""
MAX_IDLE_BYTES = 1 << 26
"""How much idle memory a pool keeps at most."""


class MemoryBudget:
    """A limit on bytes: taken before they are asked for, given back when they are done with."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @property
    def available(self) -> int:
        """How many bytes may still be taken; not negative."""
        return max(self.limit - self.used, 0)

    def reserve(self, size: int) -> None:
        """Take bytes that are there already, even beyond the limit."""
        self.used += size

    def release(self, size: int) -> None:
        """Give back bytes taken before."""
        if size > self.used:
            raise ValueError(f"{size} bytes given back, but only {self.used} were taken")
        self.used -= size


class ResponseFrame:
    """One answer's bytes, lent by a pool. Whoever keeps a part of it holds the frame meanwhile."""

    __slots__ = ("_holders", "_memory", "_pool", "size", "view")

    def __init__(self, memory: bytearray, size: int, pool: BufferPool) -> None:
        self.size = size
        self.view = memoryview(memory)[:size]
        self._memory = memory
        self._pool = pool
        self._holders = 1

    def retain(self) -> None:
        """Keep the bytes as they are until one more release."""
        if self._holders == 0:
            raise ValueError("the frame has been given back: its bytes may be others' by now")
        self._holders += 1

    def release(self) -> None:
        """Need the bytes no longer. The last one to say so gives the frame back."""
        if self._holders == 0:
            raise ValueError("the frame has been given back already")
        self._holders -= 1
        if self._holders == 0:
            self.view.release()
            self._pool.deallocate(self._memory, self.size)


class BufferPool:
    """Lends frames, and keeps what comes back for the next ones, by powers of two."""

    def __init__(
        self, budget: MemoryBudget | None = None, *, keep_bytes: int = MAX_IDLE_BYTES
    ) -> None:
        self.budget = budget or MemoryBudget(0)
        self._max_idle_bytes = keep_bytes
        self.idle_bytes = 0
        self._idle: dict[int, list[bytearray]] = {}

    def allocate(self, size: int) -> ResponseFrame:
        """Lend a frame of so many bytes; what they hold at first is nobody's business."""
        self.budget.reserve(size)
        if size < MIN_POOLED_BYTES:
            return ResponseFrame(bytearray(size), size, self)
        capacity = 1 << (size - 1).bit_length()
        return ResponseFrame(self._pop_idle(capacity) or bytearray(capacity), size, self)

    def deallocate(self, memory: bytearray, size: int) -> None:
        """Receive a frame's memory; called by its last holder's release."""
        self.budget.release(size)
        capacity = len(memory)
        if size < MIN_POOLED_BYTES or self.idle_bytes + capacity > self._max_idle_bytes:
            return
        self.idle_bytes += capacity
        self._idle.setdefault(capacity, []).append(memory)

    def _pop_idle(self, capacity: int) -> bytearray | None:
        """Find idle memory of that size, the warmest first, that nobody looks at any more."""
        idle = self._idle.get(capacity, [])
        for place in range(len(idle) - 1, -1, -1):
            if has_no_views(idle[place]):
                self.idle_bytes -= capacity
                return idle.pop(place)
        return None


def has_no_views(memory: bytearray) -> bool:
    """Tell whether no view of the memory is left: only then does a bytearray change its length.

    It shrinks by one byte and grows again within what is allocated, so nothing moves.
    """
    try:
        memory.append(memory.pop())
    except BufferError:
        return False
    return True
