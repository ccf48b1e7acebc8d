"""Shutting older producers out of a cluster, by taking over their transactional ids."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.wire.protocol.producer_ids import init_producer_id


def fence_producers(access: ClusterAccess, transactional_ids: Sequence[str]) -> None:
    """Fence them all; returns when none of them can commit any more, or raises ClusterError."""
    router = access.new_router("sparkmirror-fence")
    try:
        for name in transactional_ids:
            init_producer_id(router, transactional_id=name)
    finally:
        router.close()
