"""Options of `lab up` become cluster specifications or an error."""

from __future__ import annotations

import click
import pytest

from sparkmirror.cli.lab.options import (
    LabUpOptions,
    cluster_specs,
    parse_names,
    parse_property,
    parse_topic,
    parse_user,
)
from sparkmirror.errors import ConfigError
from sparkmirror.lab.cluster.cluster_spec import ListenerProtocol, TopicSpec

_PLAIN: LabUpOptions = {
    "clusters": ("primary", "backup"),
    "brokers": 1,
    "version": "4.3.1",
    "listeners": ("PLAINTEXT",),
    "authorizer": False,
    "topics": (),
    "properties": (),
    "users": (),
    "full_speed": False,
}


def test_names_are_split_at_commas() -> None:
    assert parse_names(" a, b,") == ("a", "b")


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("orders", ("", TopicSpec(name="orders"))),
        ("orders:3", ("", TopicSpec(name="orders", partitions=3))),
        ("backup/orders:3", ("backup", TopicSpec(name="orders", partitions=3))),
    ],
    ids=["bare", "partitions", "cluster"],
)
def test_topic_option_may_name_partitions_and_cluster(
    text: str, topic: tuple[str, TopicSpec]
) -> None:
    assert parse_topic(text) == topic


def test_value_may_contain_the_separator() -> None:
    assert parse_property("sasl.jaas.config=a b=c;") == ("sasl.jaas.config", "a b=c;")
    assert parse_user("bob:p:w") == ("bob", "p:w")


@pytest.mark.parametrize("text", ["", ",", "a,a"])
def test_empty_or_repeated_names_are_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_names(text)


@pytest.mark.parametrize("text", ["", ":3", "a:", "a:0", "a:x", "a:-1", "b/"])
def test_malformed_topic_is_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not of the form"):
        parse_topic(text)


@pytest.mark.parametrize("text", ["", "key", "=value"])
def test_malformed_property_is_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not of the form key=value"):
        parse_property(text)


def test_plaintext_cluster_has_no_users() -> None:
    primary, backup = cluster_specs(_PLAIN)
    assert (primary.name, backup.name) == ("primary", "backup")
    assert primary.users == {}
    assert primary.fast_start
    assert not primary.mutual_tls


def test_topic_belongs_to_the_named_cluster_or_to_the_first() -> None:
    topics = (("", TopicSpec(name="a", partitions=2)), ("backup", TopicSpec(name="b")))
    primary, backup = cluster_specs({**_PLAIN, "topics": topics, "brokers": 2})
    assert primary.topics == (TopicSpec(name="a", partitions=2, replication_factor=2),)
    assert [topic.name for topic in backup.topics] == ["b"]


def test_sasl_listener_gets_the_user_admin() -> None:
    options: LabUpOptions = {**_PLAIN, "listeners": ("SASL_SSL",), "users": (("bob", "pw"),)}
    primary, _ = cluster_specs(options)
    assert primary.listeners == (ListenerProtocol.SASL_SSL,)
    assert list(primary.users) == ["admin", "bob"]
    assert primary.super_users == ()


def test_authorizer_makes_admin_a_super_user_and_tls_mutual() -> None:
    primary, _ = cluster_specs({**_PLAIN, "listeners": ("SSL",), "authorizer": True})
    assert primary.authorizer
    assert primary.mutual_tls
    assert primary.super_users == ("admin",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**_PLAIN, "authorizer": True}, "--authorizer needs a listener that knows its users"),
        ({**_PLAIN, "users": (("bob", "pw"),)}, "--user needs a listener that knows users"),
        (
            {**_PLAIN, "topics": (("east", TopicSpec(name="t")),)},
            "--topic east/t: the clusters are primary, backup.",
        ),
    ],
    ids=["authorizer", "user", "topic"],
)
def test_contradictory_options_are_rejected(options: LabUpOptions, message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        cluster_specs(options)


def test_invalid_cluster_specification_is_rejected() -> None:
    with pytest.raises(ConfigError, match="choose 1 to 9"):
        cluster_specs({**_PLAIN, "brokers": 10})
