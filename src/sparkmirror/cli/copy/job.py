"""From a request and its plan to the job that the engine runs. Pure."""

from __future__ import annotations

from sparkmirror.cli.copy.plan import CopyPlan
from sparkmirror.cli.copy.request import CopyRequest
from sparkmirror.copy.job import CopyJob, StartPosition
from sparkmirror.copy.settings import CopySettings, rate_per_task


def make_job(request: CopyRequest, plan: CopyPlan) -> CopyJob:
    """Say it as the engine takes it."""
    return CopyJob(
        connector=request.connector,
        group_id=request.group_id,
        settings=_job_settings(request, len(plan.tasks)),
        offsets_topic=request.offsets_topic.name,
        remote_topics=plan.remote_topics,
        tasks=plan.tasks,
        start=request.start or StartPosition(),
        on_loss=request.on_loss,
        delivery=request.delivery,
        commit_interval_s=request.commit_interval_s,
    )


def _job_settings(request: CopyRequest, tasks: int) -> CopySettings:
    return CopySettings(
        source_alias=request.flow.source,
        target_alias=request.flow.target,
        source=request.source.with_absolute_paths(),
        target=request.target.with_absolute_paths(),
        read_committed=request.read_committed,
        rack=request.source.expanded.get("client.rack", ""),
        bytes_per_s=rate_per_task(request.bytes_per_s, tasks),
    )
