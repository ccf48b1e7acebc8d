"""The way to the offsets topic that a job names, with a connection of its own."""

from __future__ import annotations

from sparkmirror.copy.dial import dial
from sparkmirror.copy.job import Job
from sparkmirror.store.offsets import OffsetsTopic
from sparkmirror.wire.routing import Router


def offsets_topic_of(job: Job) -> OffsetsTopic:
    """Make it; nothing is asked yet. Whoever gets it closes it."""
    settings = job.settings
    client = job.offsets_client or settings.target
    router = Router(*dial(settings.target_alias, client, settings.client_id))
    return OffsetsTopic(router, job.offsets_topic)
