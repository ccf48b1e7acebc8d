"""From the options of `copy`, as click hands them over, to a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import click

from sparkmirror.cli.copy.options import import_policy
from sparkmirror.cli.copy.request import BOOTSTRAP, DEFAULT_CONNECTOR, ClientFile, CopyRequest
from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.tables.filters import CONFIG_FILTER, TOPIC_FILTER
from sparkmirror.copy.delivery import DEFAULT_COMMIT_INTERVAL_S, DeliveryMode
from sparkmirror.copy.job import DataLossPolicy, StartPosition
from sparkmirror.mirror.topics.filters import DefaultConfigPropertyFilter, DefaultTopicFilter
from sparkmirror.mirror.topics.replication_policy import ReplicationPolicyConfig, create_policy
from sparkmirror.model import SourceAndTarget


class CopyOptions(TypedDict):
    """What was asked for, option by option; None is what was not said."""

    source_servers: str | None
    target_servers: str | None
    source_config: Path | None
    target_config: Path | None
    source_alias: str
    target_alias: str
    topics: tuple[str, ...]
    exclude: tuple[str, ...] | None
    policy: str
    start: StartPosition | None
    rate: int | None
    tasks: int | None
    on_loss: str
    read_uncommitted: bool
    exactly_once: bool
    commit_interval: int | None
    replication_factor: int | None
    name: str | None


def build_request(said: CopyOptions, environ: Mapping[str, str]) -> CopyRequest:
    """Put everything together; whatever cannot be meant is refused with a sentence."""
    flow = SourceAndTarget(said["source_alias"], said["target_alias"])
    if flow.source == flow.target:
        raise click.UsageError(
            f"Both clusters have the alias {flow.source!r}: choose others with --source-alias and"
            " --target-alias."
        )
    excluded = (*_default_list(TOPIC_FILTER, "topics.exclude"), *(said["exclude"] or ()))
    return CopyRequest(
        flow=flow,
        source=_client_file(said["source_config"], said["source_servers"], environ, "--from"),
        target=_client_file(said["target_config"], said["target_servers"], environ, "--to"),
        policy=create_policy(
            said["policy"], ReplicationPolicyConfig(source_alias=flow.source), import_policy
        ),
        topic_filter=DefaultTopicFilter.of(said["topics"], excluded),
        config_filter=DefaultConfigPropertyFilter.of(
            _default_list(CONFIG_FILTER, "config.properties.exclude")
        ),
        patterns=said["topics"],
        tasks_max=said["tasks"] or _default_task_count(),
        connector=said["name"] or DEFAULT_CONNECTOR,
        start=said["start"],
        on_loss=DataLossPolicy(said["on_loss"]),
        read_committed=not said["read_uncommitted"],
        delivery=_delivery(said),
        commit_interval_s=_commit_interval_s(said),
        bytes_per_s=said["rate"] or 0,
        replication_factor=said["replication_factor"],
    )


def _delivery(said: CopyOptions) -> DeliveryMode:
    if not said["exactly_once"]:
        return DeliveryMode.SEQUENCED
    if said["read_uncommitted"]:
        raise click.UsageError(
            "--exactly-once and --read-uncommitted exclude each other: what the source aborts would"
            " count on the target."
        )
    return DeliveryMode.EXACTLY_ONCE


def _commit_interval_s(said: CopyOptions) -> float:
    interval_ms = said["commit_interval"]
    if interval_ms is None:
        return DEFAULT_COMMIT_INTERVAL_S
    if not said["exactly_once"]:
        raise click.UsageError("--commit-interval is for --exactly-once.")
    return interval_ms / 1000


def _client_file(
    file: Path | None, servers: str | None, environ: Mapping[str, str], option: str
) -> ClientFile:
    client = ClientFile.read(file, servers, environ)
    if not client.raw.get(BOOTSTRAP):
        lacks = f"{file} has no {BOOTSTRAP}" if file else "no broker is named"
        raise click.UsageError(f"{lacks}: say {option} HOST:PORT.")
    return client


def _default_list(table: ConfigDef, key: str) -> tuple[str, ...]:
    default = table[key].default
    assert isinstance(default, tuple)
    return tuple(str(item) for item in default)


def _default_task_count() -> int:
    """One for every two processors that this process may use.

    A task moves hundreds of megabytes a second with one of them; the more partitions it has, the
    fewer requests the brokers get.
    """
    can_tell = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1
    return max(cores // 2, 1)
