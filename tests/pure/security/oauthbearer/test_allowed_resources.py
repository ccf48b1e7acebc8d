"""Logins use only URLs, files and classes that the operator of the process lists."""

from __future__ import annotations

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.security.oauthbearer.allowed_resources import (
    AllowedResources,
    allowed_variables,
    with_allowed_resources,
)

URL = "https://idp.example/token"
JAVA = "-Xmx1g -Dorg.apache.kafka.sasl.oauthbearer.allowed"


def test_nothing_is_allowed_without_a_list_and_the_error_names_the_setting() -> None:
    nothing = AllowedResources.from_environment({})
    with pytest.raises(ConfigError) as url:
        nothing.require_url("k", URL)
    assert f"sparkmirror.oauthbearer.allowed.urls={URL}" in str(url.value)
    assert f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={URL}" in str(url.value)
    with pytest.raises(ConfigError, match=r"sparkmirror\.oauthbearer\.allowed\.files=/a"):
        nothing.require_file("k", "/a")
    with pytest.raises(ConfigError, match=r"sparkmirror\.oauthbearer\.allowed\.classes=m:C"):
        nothing.require_class("k", "m:C")


def test_the_system_properties_of_kafka_are_read_from_kafka_opts() -> None:
    options = f"{JAVA}.urls={URL},file:/t {JAVA}.files='/a b,/c'"
    allowed = AllowedResources.from_environment({"KAFKA_OPTS": options})
    assert allowed.urls == {URL, "file:/t"}
    assert allowed.files == {"/a b", "/c"}
    allowed.require_url("k", URL)
    allowed.require_file("k", "/a b")


def test_the_lists_of_the_workers_file_are_added_to_those_of_the_environment() -> None:
    environment = {"KAFKA_OPTS": f"{JAVA}.urls={URL}"}
    more = with_allowed_resources(
        {"sparkmirror.oauthbearer.allowed.urls": "http://a/t, http://b/t"}, environment
    )
    assert AllowedResources.from_environment(more).urls == {URL, "http://a/t", "http://b/t"}
    assert allowed_variables(more) == {
        "SPARKMIRROR_OAUTHBEARER_ALLOWED_URLS": f"http://a/t,http://b/t,{URL}"
    }


def test_a_url_must_be_listed_to_the_letter() -> None:
    allowed = AllowedResources(urls=frozenset({URL}))
    for other in (f"{URL}/", f"{URL}?x", "https://idp.example/", "http://idp.example/token"):
        with pytest.raises(ConfigError):
            allowed.require_url("k", other)


def test_a_file_url_may_be_listed_as_a_url_or_as_a_file() -> None:
    AllowedResources(urls=frozenset({"file:/t"})).require_url("k", "file:/t")
    for url in ("file:/t", "file:///t"):
        AllowedResources(files=frozenset({"/t"})).require_url("k", url)
