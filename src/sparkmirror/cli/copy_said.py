"""From the options of `copy`, as click hands them over, to a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import click

from sparkmirror.cli.copy_options import import_policy
from sparkmirror.cli.copy_request import BOOTSTRAP, DEFAULT_CONNECTOR, ClientFile, CopyRequest
from sparkmirror.config.definition import ConfigDef
from sparkmirror.config.tables.filters import CONFIG_FILTER, TOPIC_FILTER
from sparkmirror.copy.delivery import COMMIT_EVERY_S, Delivery
from sparkmirror.copy.job import OnLoss, Start
from sparkmirror.mirror.filters import DefaultConfigPropertyFilter, DefaultTopicFilter
from sparkmirror.mirror.naming import PolicyConfig, policy
from sparkmirror.model import SourceAndTarget


class Said(TypedDict):
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
    start: Start | None
    rate: int | None
    tasks: int | None
    on_loss: str
    read_uncommitted: bool
    exactly_once: bool
    commit_interval: int | None
    replication_factor: int | None
    name: str | None


def request_of(said: Said, environ: Mapping[str, str]) -> CopyRequest:
    """Put everything together; whatever cannot be meant is refused with a sentence."""
    flow = SourceAndTarget(said["source_alias"], said["target_alias"])
    if flow.source == flow.target:
        raise click.UsageError(
            f"Both clusters have the alias {flow.source!r}: choose others with --source-alias and"
            " --target-alias."
        )
    excluded = (*_defaults(TOPIC_FILTER, "topics.exclude"), *(said["exclude"] or ()))
    return CopyRequest(
        flow=flow,
        source=_client(said["source_config"], said["source_servers"], environ, "--from"),
        target=_client(said["target_config"], said["target_servers"], environ, "--to"),
        policy=policy(said["policy"], PolicyConfig(source_alias=flow.source), import_policy),
        topic_filter=DefaultTopicFilter.of(said["topics"], excluded),
        config_filter=DefaultConfigPropertyFilter.of(
            _defaults(CONFIG_FILTER, "config.properties.exclude")
        ),
        patterns=said["topics"],
        tasks_max=said["tasks"] or _default_tasks(),
        connector=said["name"] or DEFAULT_CONNECTOR,
        start=said["start"],
        on_loss=OnLoss(said["on_loss"]),
        read_committed=not said["read_uncommitted"],
        delivery=_delivery(said),
        commit_every_s=_commit_every_s(said),
        bytes_per_s=said["rate"] or 0,
        replication_factor=said["replication_factor"],
    )


def _delivery(said: Said) -> Delivery:
    if not said["exactly_once"]:
        return Delivery.SEQUENCED
    if said["read_uncommitted"]:
        raise click.UsageError(
            "--exactly-once and --read-uncommitted exclude each other: what the source aborts would"
            " count on the target."
        )
    return Delivery.EXACTLY_ONCE


def _commit_every_s(said: Said) -> float:
    interval_ms = said["commit_interval"]
    if interval_ms is None:
        return COMMIT_EVERY_S
    if not said["exactly_once"]:
        raise click.UsageError("--commit-interval is for --exactly-once.")
    return interval_ms / 1000


def _client(
    file: Path | None, servers: str | None, environ: Mapping[str, str], option: str
) -> ClientFile:
    client = ClientFile.read(file, servers, environ)
    if not client.raw.get(BOOTSTRAP):
        lacks = f"{file} has no {BOOTSTRAP}" if file else "no broker is named"
        raise click.UsageError(f"{lacks}: say {option} HOST:PORT.")
    return client


def _defaults(table: ConfigDef, key: str) -> tuple[str, ...]:
    default = table[key].default
    assert isinstance(default, tuple)
    return tuple(str(item) for item in default)


def _default_tasks() -> int:
    """One for every two processors that this process may use.

    A task moves hundreds of megabytes a second with one of them; the more partitions it has, the
    fewer requests the brokers get.
    """
    can_tell = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if can_tell else os.cpu_count() or 1
    return max(cores // 2, 1)
