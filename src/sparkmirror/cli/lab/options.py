"""Turns the options of `lab up` into cluster specifications.

This module checks the syntax of options; `ClusterSpec` checks that a cluster is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypedDict, TypeVar

import click

from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol, TopicSpec

T = TypeVar("T")

_MAX_REPLICATION_FACTOR = 3

ADMIN = "admin"
ADMIN_PASSWORD = "admin-secret"  # noqa: S105 - of a throw-away cluster on the loopback address


class LabUpOptions(TypedDict):
    """The options of `lab up`, as click passes them."""

    clusters: tuple[str, ...]
    brokers: int
    version: str
    listeners: tuple[str, ...]
    authorizer: bool
    topics: tuple[tuple[str, TopicSpec], ...]
    properties: tuple[tuple[str, str], ...]
    users: tuple[tuple[str, str], ...]
    full_speed: bool


def parse_names(text: str) -> tuple[str, ...]:
    """Read names with commas between them; each may come once."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise click.BadParameter("name at least one cluster.")
    if len(set(names)) != len(names):
        raise click.BadParameter(f"{text!r} names a cluster twice.")
    return names


def parse_property(text: str) -> tuple[str, str]:
    """Read `key=value`; the value may hold anything."""
    return _pair(text, "=", "key=value")


def parse_user(text: str) -> tuple[str, str]:
    """Read `name:password`. The error does not repeat the text: it may hold a password."""
    name, colon, password = text.partition(":")
    if not name.strip() or not colon:
        raise click.BadParameter("a user is written name:password.")
    return name.strip(), password.strip()


def parse_topic(text: str) -> tuple[str, TopicSpec]:
    """Read `[cluster/]topic[:partitions]`; the cluster is "" if none is named."""
    cluster, _, rest = text.rpartition("/")
    topic, colon, number = rest.partition(":")
    partitions = number if colon else "1"
    if not topic or not partitions.isdecimal() or int(partitions) < 1:
        raise click.BadParameter(f"{text!r} is not of the form [cluster/]topic[:partitions].")
    return cluster, TopicSpec(name=topic, partitions=int(partitions))


def _pair(text: str, separator: str, form: str) -> tuple[str, str]:
    first, separator_found, second = text.partition(separator)
    if not first.strip() or not separator_found:
        raise click.BadParameter(f"{text!r} is not of the form {form}.")
    return first.strip(), second.strip()


def option_callback(read: Callable[[str], T]) -> Callable[[click.Context, click.Parameter, str], T]:
    """Make a click callback of a parser."""
    return lambda _context, _parameter, text: read(text)


def repeated_option_callback(
    read: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[T, ...]]:
    """Make a click callback of a parser for a repeated option."""
    return lambda _context, _parameter, texts: tuple(read(text) for text in texts)


def cluster_specs(options: LabUpOptions) -> list[ClusterSpec]:
    """Return the specifications of the clusters."""
    listeners = tuple(ListenerProtocol(name) for name in options["listeners"])
    _validate(options, listeners)
    mutual = options["authorizer"] and ListenerProtocol.SSL in listeners
    has_users = mutual or any(listener.uses_sasl for listener in listeners)
    users = {ADMIN: ADMIN_PASSWORD, **dict(options["users"])} if has_users else {}
    return [
        ClusterSpec(
            name=name,
            brokers=options["brokers"],
            version=options["version"],
            listeners=listeners,
            mutual_tls=mutual,
            authorizer=options["authorizer"],
            users=users,
            super_users=(ADMIN,) if options["authorizer"] else (),
            properties=dict(options["properties"]),
            topics=_cluster_topics(name, options),
            fast_start=not options["full_speed"],
        )
        for name in options["clusters"]
    ]


def _cluster_topics(cluster: str, options: LabUpOptions) -> tuple[TopicSpec, ...]:
    """Return the topics of a cluster, with enough replicas to survive `lab kill`."""
    first = options["clusters"][0]
    replicas = min(_MAX_REPLICATION_FACTOR, options["brokers"])
    return tuple(
        replace(topic, replication_factor=replicas)
        for cluster_name, topic in options["topics"]
        if (cluster_name or first) == cluster
    )


def _validate(options: LabUpOptions, listeners: Sequence[ListenerProtocol]) -> None:
    """Raise UsageError for options that contradict each other."""
    for cluster_name, topic in options["topics"]:
        if cluster_name and cluster_name not in options["clusters"]:
            known = ", ".join(options["clusters"])
            raise click.UsageError(
                f"--topic {cluster_name}/{topic.name}: the clusters are {known}."
            )
    if set(listeners) == {ListenerProtocol.PLAINTEXT} and options["authorizer"]:
        raise click.UsageError(
            "--authorizer needs a listener that knows its users: add --listener SASL_PLAINTEXT,"
            " SASL_SSL or SSL."
        )
    if options["users"] and not (
        options["authorizer"] or any(listener.uses_sasl for listener in listeners)
    ):
        raise click.UsageError("--user needs a listener that knows users: add --listener SASL_SSL.")
