"""The way to the offsets topic that a job names, with a connection of its own."""

from __future__ import annotations

from sparkmirror.copy.client_setup import resolve_client
from sparkmirror.copy.job import CopyJob
from sparkmirror.store.offsets_topic import OffsetsTopic
from sparkmirror.wire.net.routing import Router


def open_offsets_topic(job: CopyJob) -> OffsetsTopic:
    """Make it; nothing is asked yet. Whoever gets it closes it."""
    settings = job.settings
    client = job.offsets_client or settings.target
    router = Router(*resolve_client(settings.target_alias, client, settings.client_id))
    return OffsetsTopic(router, job.offsets_topic)
