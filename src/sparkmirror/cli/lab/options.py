"""What people say to `lab up`, made into specifications of clusters.

Knows the spelling of options only; whether a cluster makes sense is for its specification.
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
    """The options of `lab up`, as click hands them over."""

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
    """Read `name:password`. What is wrong with it is told without repeating it."""
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
    first, found, second = text.partition(separator)
    if not first.strip() or not found:
        raise click.BadParameter(f"{text!r} is not of the form {form}.")
    return first.strip(), second.strip()


def option_callback(read: Callable[[str], T]) -> Callable[[click.Context, click.Parameter, str], T]:
    """Let click read an option with a function."""
    return lambda _context, _parameter, text: read(text)


def repeated_option_callback(
    read: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], tuple[T, ...]]:
    """Let click read every value of a repeated option with a function."""
    return lambda _context, _parameter, texts: tuple(read(text) for text in texts)


def cluster_specs(said: LabUpOptions) -> list[ClusterSpec]:
    """Say what clusters are wanted."""
    listeners = tuple(ListenerProtocol(name) for name in said["listeners"])
    _validate(said, listeners)
    mutual = said["authorizer"] and ListenerProtocol.SSL in listeners
    has_users = mutual or any(listener.uses_sasl for listener in listeners)
    users = {ADMIN: ADMIN_PASSWORD, **dict(said["users"])} if has_users else {}
    return [
        ClusterSpec(
            name=name,
            brokers=said["brokers"],
            version=said["version"],
            listeners=listeners,
            mutual_tls=mutual,
            authorizer=said["authorizer"],
            users=users,
            super_users=(ADMIN,) if said["authorizer"] else (),
            properties=dict(said["properties"]),
            topics=_cluster_topics(name, said),
            fast_start=not said["full_speed"],
        )
        for name in said["clusters"]
    ]


def _cluster_topics(cluster: str, said: LabUpOptions) -> tuple[TopicSpec, ...]:
    """Give a cluster its topics, with enough replicas to survive what `lab kill` does."""
    first = said["clusters"][0]
    replicas = min(_MAX_REPLICATION_FACTOR, said["brokers"])
    return tuple(
        replace(topic, replication_factor=replicas)
        for place, topic in said["topics"]
        if (place or first) == cluster
    )


def _validate(said: LabUpOptions, listeners: Sequence[ListenerProtocol]) -> None:
    """Refuse what each cluster alone could not know to be wrong."""
    for place, topic in said["topics"]:
        if place and place not in said["clusters"]:
            known = ", ".join(said["clusters"])
            raise click.UsageError(f"--topic {place}/{topic.name}: the clusters are {known}.")
    if set(listeners) == {ListenerProtocol.PLAINTEXT} and said["authorizer"]:
        raise click.UsageError(
            "--authorizer needs a listener that knows its users: add --listener SASL_PLAINTEXT,"
            " SASL_SSL or SSL."
        )
    if said["users"] and not (said["authorizer"] or any(one.uses_sasl for one in listeners)):
        raise click.UsageError("--user needs a listener that knows users: add --listener SASL_SSL.")
