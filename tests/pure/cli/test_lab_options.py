"""What people say to `lab up` becomes specifications, or one clear sentence."""

from __future__ import annotations

import click
import pytest

from sparkmirror.cli.lab_options import (
    Said,
    read_names,
    read_property,
    read_topic,
    read_user,
    specifications,
)
from sparkmirror.errors import ConfigError
from sparkmirror.lab.spec import Listener, TopicSpec

_PLAIN: Said = {
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
    assert read_names(" a, b,") == ("a", "b")


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("orders", ("", TopicSpec(name="orders"))),
        ("orders:3", ("", TopicSpec(name="orders", partitions=3))),
        ("backup/orders:3", ("backup", TopicSpec(name="orders", partitions=3))),
    ],
    ids=["bare", "partitions", "cluster"],
)
def test_topics_name_partitions_and_cluster(text: str, topic: tuple[str, TopicSpec]) -> None:
    assert read_topic(text) == topic


def test_values_of_properties_may_hold_the_separator() -> None:
    assert read_property("sasl.jaas.config=a b=c;") == ("sasl.jaas.config", "a b=c;")
    assert read_user("bob:p:w") == ("bob", "p:w")


@pytest.mark.parametrize("text", ["", ",", "a,a"])
def test_lists_without_sense_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        read_names(text)


@pytest.mark.parametrize("text", ["", ":3", "a:", "a:0", "a:x", "a:-1", "b/"])
def test_topics_without_sense_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not of the form"):
        read_topic(text)


@pytest.mark.parametrize("text", ["", "key", "=value"])
def test_pairs_without_sense_are_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not of the form key=value"):
        read_property(text)


def test_plain_clusters_know_no_users() -> None:
    primary, backup = specifications(_PLAIN)
    assert (primary.name, backup.name) == ("primary", "backup")
    assert primary.users == {}
    assert primary.fast_start
    assert not primary.mutual_tls


def test_topics_go_to_the_cluster_they_name_else_to_the_first() -> None:
    topics = (("", TopicSpec(name="a", partitions=2)), ("backup", TopicSpec(name="b")))
    primary, backup = specifications({**_PLAIN, "topics": topics, "brokers": 2})
    assert primary.topics == (TopicSpec(name="a", partitions=2, replication_factor=2),)
    assert [topic.name for topic in backup.topics] == ["b"]


def test_listeners_that_know_users_get_an_admin() -> None:
    said: Said = {**_PLAIN, "listeners": ("SASL_SSL",), "users": (("bob", "pw"),)}
    primary, _ = specifications(said)
    assert primary.listeners == (Listener.SASL_SSL,)
    assert list(primary.users) == ["admin", "bob"]
    assert primary.super_users == ()


def test_authorizer_makes_admin_a_super_user_and_tls_mutual() -> None:
    primary, _ = specifications({**_PLAIN, "listeners": ("SSL",), "authorizer": True})
    assert primary.authorizer
    assert primary.mutual_tls
    assert primary.super_users == ("admin",)


@pytest.mark.parametrize(
    ("said", "sentence"),
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
def test_options_that_do_not_fit_together_are_refused(said: Said, sentence: str) -> None:
    with pytest.raises(click.UsageError, match=sentence):
        specifications(said)


def test_what_a_cluster_cannot_be_is_said_by_its_specification() -> None:
    with pytest.raises(ConfigError, match="choose 1 to 9"):
        specifications({**_PLAIN, "brokers": 10})
