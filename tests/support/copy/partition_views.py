"""What a snapshot shows of the partitions of a copy: wait until it holds for all of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sparkmirror.copy.snapshot import CopySnapshot, PartitionView
from tests.support.copy.copy_harness import CopyHarness

log = logging.getLogger(__name__)


def wait_for_views(
    harness: CopyHarness, what: str, condition: Callable[[PartitionView], bool]
) -> None:
    """Wait until a condition holds for every partition; log how long it took."""
    began = time.monotonic()

    def all_hold(seen: CopySnapshot) -> bool:
        return all(condition(view) for view in seen.partitions.values())

    harness.wait_for_snapshot(what, all_hold)
    log.info("%s after %.1f s", what, time.monotonic() - began)


def is_caught_up(view: PartitionView) -> bool:
    """Whether a task copies the partition and has nothing left to copy."""
    return view.state == "leased" and not view.reason and 0 <= view.end == view.position
