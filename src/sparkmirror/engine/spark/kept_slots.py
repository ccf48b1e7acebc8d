"""Runs Spark tasks in slots that outlive them: at a change of epochs the tasks of a slot copy on.

Spark runs one Spark task at a time in a Python process, and uses the process again for the next
epoch. The Spark task then adopts the slot that runs in the process. In any other process it opens a
slot of its own; the driver releases the slot that no Spark task has adopted. A Spark task that
comes to the process after that returns the receipts of the released slot, and opens another one.

No pyspark and no rules of copying.
"""

from __future__ import annotations

from sparkmirror.copy.control.messages import SlotHello
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.spark.receipt_rows import ReceiptRow
from sparkmirror.engine.spark.slot import RunTask, Slot


class KeptSlots:
    """The slot of this process. Belongs to the thread of Spark tasks."""

    def __init__(self) -> None:
        self._kept: tuple[ControlEndpoint, Slot] | None = None

    @property
    def has_running_slot(self) -> bool:
        """Whether tasks may copy in the process although no Spark task runs."""
        return self._kept is not None and not self._kept[1].is_over

    def run(
        self, endpoint: ControlEndpoint, hello: SlotHello, run_task: RunTask
    ) -> list[ReceiptRow]:
        """Run the slot until its epoch ends; returns the receipts of the epoch.

        Raises ControlConnectionLost if the driver is lost.
        """
        rows: list[ReceiptRow] = []
        while True:
            slot = self._adopted(endpoint, hello) or Slot(endpoint, hello, run_task)
            end = slot.await_end_of_epoch()
            rows += end.rows
            if end.is_kept:
                self._kept = endpoint, slot
            if not end.is_released:
                return rows

    def _adopted(self, endpoint: ControlEndpoint, hello: SlotHello) -> Slot | None:
        """Return the kept slot of this driver, if it waits for this epoch, or did until its end."""
        if self._kept is None or self._kept[0] != endpoint:
            return None
        slot = self._kept[1]
        if not slot.adopt(hello):
            return None
        self._kept = None
        return slot
