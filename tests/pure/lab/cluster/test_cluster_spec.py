"""The specification of a cluster: defaults, faults and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sparkmirror.cluster.produce_and_consume import ProducerRecord
from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.cluster_spec import (
    CONTROL_USER,
    ClusterSpec,
    ListenerProtocol,
    OAuthEndpoints,
    TopicSpec,
)

SASL = (ListenerProtocol.SASL_SSL,)
OAUTH = OAuthEndpoints(jwks_url="http://localhost:1/jwks", token_url="http://localhost:1/token")


def test_only_the_name_is_required() -> None:
    spec = ClusterSpec(name="west")
    assert (spec.brokers, spec.listeners, spec.users) == (1, (ListenerProtocol.PLAINTEXT,), {})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "we st"}, "'we st' is no name"),
        ({"name": "x" * 65}, "is no name"),
        ({"brokers": 0}, "0 brokers: choose 1 to 9"),
        ({"brokers": 10}, "10 brokers: choose 1 to 9"),
        ({"heap": "lots"}, "'lots' is no heap size"),
        ({"listeners": ()}, "at least one"),
        ({"listeners": (ListenerProtocol.SSL, ListenerProtocol.SSL)}, "name each listener once"),
        ({"listeners": (ListenerProtocol.SSL_EXPIRED,)}, "first listener needs a valid"),
        ({"listeners": SASL}, "a SASL listener needs at least one user"),
        ({"mutual_tls": True, "users": {"a": "b"}}, "mutual TLS is for the SSL listener"),
        ({"mutual_tls": True, "listeners": (ListenerProtocol.SSL,)}, "mutual TLS needs users"),
        ({"advertised": {"SSL": "proxy:9"}}, "there is no listener SSL"),
        ({"advertised": {"PLAINTEXT": "proxy:9"}, "brokers": 2}, "cannot advertise one address"),
        ({"proxied_listeners": {"CONTROL": "proxy:9"}}, "'CONTROL' is no name of a further"),
        ({"proxied_listeners": {"A": "proxy:9"}, "brokers": 2}, "cannot advertise one address"),
        ({"users": {"a b": "c"}}, "'a b' is no user name"),
        ({"users": {"alice": ""}}, "user alice has an empty password"),
        ({"users": {CONTROL_USER: "x"}}, "is the lab's own user"),
        ({"super_users": ("zoe",)}, "'zoe' is not among the users"),
        ({"oauth": OAUTH, "version": "3.0.2"}, "tokens of an OAuth server from Kafka 3.1 on"),
        ({"topics": (TopicSpec(name="t"), TopicSpec(name="t"))}, "topic t is given twice"),
        ({"topics": (TopicSpec(name="t", partitions=0),)}, "t needs at least one partition"),
        ({"topics": (TopicSpec(name="t", replication_factor=2),)}, "the cluster has 1 brokers"),
        (
            {"topics": (TopicSpec(name="t", records=(ProducerRecord(value=b"", partition=1),)),)},
            "topic t has no partition 1",
        ),
    ],
    ids=lambda part: part[:20] if isinstance(part, str) else "",
)
def test_invalid_spec_is_rejected(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        ClusterSpec(**{"name": "west", **changes})


def test_error_contains_all_faults() -> None:
    with pytest.raises(ConfigError) as raised:
        ClusterSpec(name="", brokers=0, heap="x", listeners=SASL)
    assert [fault.key for fault in raised.value.faults] == ["name", "brokers", "heap", "users"]


def test_error_contains_no_password() -> None:
    with pytest.raises(ConfigError) as raised:
        ClusterSpec(name="west", users={"a b": "geheim"})
    assert "geheim" not in str(raised.value)


def test_repr_contains_no_password() -> None:
    assert "geheim" not in repr(ClusterSpec(name="west", users={"alice": "geheim"}))


@pytest.mark.parametrize(("brokers", "controllers"), [(1, 1), (2, 1), (3, 3), (9, 3)])
def test_the_number_of_controllers_is_odd(brokers: int, controllers: int) -> None:
    assert ClusterSpec(name="west", brokers=brokers).controllers == controllers


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        (ClusterSpec(name="a"), False),
        (ClusterSpec(name="b", authorizer=True), True),
        (ClusterSpec(name="c", listeners=(ListenerProtocol.SSL,)), True),
        (ClusterSpec(name="d", listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SSL)), True),
    ],
    ids=["plain", "authorizer", "tls", "both"],
)
def test_secured_cluster_has_a_control_listener(spec: ClusterSpec, needed: bool) -> None:
    assert spec.has_control_listener is needed


def test_json_of_a_spec_contains_all_but_records() -> None:
    topic = TopicSpec(
        name="t", partitions=3, configs={"a": "b"}, records=(ProducerRecord(value=b""),)
    )
    spec = ClusterSpec(
        name="west",
        listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_SSL),
        users={"alice": "x"},
        super_users=("alice",),
        properties={"num.partitions": "3"},
        topics=(topic,),
    )
    again = ClusterSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again.topics == (TopicSpec(name="t", partitions=3, configs={"a": "b"}),)
    assert again.to_json() == spec.to_json()
    assert again.listeners == spec.listeners
