"""From a request and its plan to the job that the engine runs. Pure."""

from __future__ import annotations

from sparkmirror.cli.copy_plan import CopyPlan
from sparkmirror.cli.copy_request import CopyRequest
from sparkmirror.copy.job import Job, Start
from sparkmirror.copy.settings import Settings
from sparkmirror.copy.throttle import share


def make_job(request: CopyRequest, plan: CopyPlan) -> Job:
    """Say it as the engine takes it."""
    return Job(
        connector=request.connector,
        group_id=request.group_id,
        settings=_settings(request, len(plan.tasks)),
        offsets_topic=request.offsets_topic.name,
        remote_topics=plan.remote_topics,
        tasks=plan.tasks,
        start=request.start or Start(),
        on_loss=request.on_loss,
        delivery=request.delivery,
        commit_every_s=request.commit_every_s,
    )


def _settings(request: CopyRequest, tasks: int) -> Settings:
    return Settings(
        source_alias=request.flow.source,
        target_alias=request.flow.target,
        source=request.source.portable(),
        target=request.target.portable(),
        read_committed=request.read_committed,
        rack=request.source.expanded.get("client.rack", ""),
        bytes_per_s=share(request.bytes_per_s, tasks),
    )
