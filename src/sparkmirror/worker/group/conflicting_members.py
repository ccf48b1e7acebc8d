"""What a worker says about other members of its group. Pure."""

from __future__ import annotations

from sparkmirror.errors import ClusterError, ConfigError
from sparkmirror.wire.protocol.group_membership import GroupMembers

PROTOCOL_TYPE = "connect"
PROTOCOL = "sparkmirror"
"""The name of our protocol. Kafka refuses Java workers in such a group, and ours in theirs."""


def check_protocol_type(group_id: str, found: GroupMembers) -> None:
    """Raise ConfigError if the members of a group are not Connect workers."""
    if found.members and found.protocol_type not in ("", PROTOCOL_TYPE):
        raise ConfigError.of(
            "group.id",
            f"group {group_id} has members of type {found.protocol_type}, which are no Connect"
            " workers; choose another group.id",
        )


def split_members(found: GroupMembers, client_id: str) -> tuple[list[str], list[str]]:
    """Return the member ids with this client id, and the other members as `client id at host`."""
    own = [one.member_id for one in found.members if one.client_id == client_id]
    others = [
        f"{one.client_id} at {one.client_host}"
        for one in found.members
        if one.client_id != client_id
    ]
    return own, others


def has_java_worker(found: GroupMembers) -> bool:
    """Return whether the members of a group are Java workers."""
    return bool(found.members) and found.protocol not in ("", PROTOCOL)


def refused_text(cluster: str, group_id: str, found: GroupMembers, others: list[str]) -> str:
    """Return the sentence about members that keep this worker out of its group."""
    names = ", ".join(others)
    if has_java_worker(found):
        return (
            f"{cluster}: group {group_id} has a Java worker already: {names}. Java workers and this"
            " one cannot share a group: stop the Java worker, or give this one another group.id and"
            " other topics"
        )
    return (
        f"{cluster}: group {group_id} has a worker already: {names}. Without"
        " dedicated.mode.enable.internal.rest=true a flow belongs to one node: stop the other one,"
        " or set the key on all nodes"
    )


def older_worker_text(cluster: str, group_id: str, others: list[str]) -> str:
    """Return the sentence about a worker of a version that shares its group with no other."""
    return (
        f"{cluster}: group {group_id} has a worker of an earlier version: {', '.join(others)}. It"
        " runs everything alone: stop it, then this one takes over"
    )


def unnoticed_text(group_id: str, error: ClusterError) -> str:
    """Return the sentence about a worker that the coordinator refuses."""
    return f"a second worker of group {group_id} would not be noticed: {error}"


def same_address_text(group_id: str, worker_id: str) -> str:
    """Return the sentence about two members that advertise the same address."""
    return (
        f"two workers of group {group_id} have the address {worker_id}: set"
        " rest.advertised.host.name or listeners so that other workers reach each of them"
    )
