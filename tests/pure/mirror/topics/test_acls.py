"""ACLs of remote topics permit reading only; only the mirror writes remote topics."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.mirror.topics.acls import (
    AclBinding,
    should_replicate_acl,
    target_acl_binding,
    target_acl_bindings,
)
from sparkmirror.mirror.topics.replication_policy import IdentityReplicationPolicy
from tests.support.connect.replication_rules import selection, topic_filter
from tests.support.golden import golden_json

RECORDED: dict[str, Any] = golden_json("vectors/acl.json")
FLOW = selection(topic_filter(topics=RECORDED["topics"]))


def acl(
    name: str = "topic1",
    *,
    permission: str = "ALLOW",
    operation: str = "READ",
    pattern_type: str = "LITERAL",
    resource_type: str = "TOPIC",
) -> AclBinding:
    return AclBinding(
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern_type,
        principal="User:alice",
        host="*",
        operation=operation,
        permission=permission,
    )


def test_every_recorded_acl_is_selected_and_transformed_as_in_java() -> None:
    assert len(RECORDED["rows"]) > 50
    for name, pattern_type, permission, operation, copied, *rewritten in RECORDED["rows"]:
        rule = acl(name, permission=permission, operation=operation, pattern_type=pattern_type)
        copy = target_acl_binding(rule, FLOW)
        assert should_replicate_acl(rule) is copied
        assert rewritten == [
            copy.resource_type,
            copy.resource_name,
            copy.pattern_type,
            copy.principal,
            copy.host,
            copy.permission,
            copy.operation,
        ]


def test_acl_filtering() -> None:
    assert not should_replicate_acl(acl(operation="WRITE"))
    assert should_replicate_acl(acl(operation="ALL"))
    assert should_replicate_acl(acl(operation="WRITE", permission="DENY"))


def test_acl_transformation() -> None:
    allowed = target_acl_binding(acl(operation="ALL"), FLOW)
    assert allowed == acl("source.topic1", operation="READ")
    denied = target_acl_binding(acl(operation="ALL", permission="DENY"), FLOW)
    assert denied == acl("source.topic1", operation="ALL", permission="DENY")


def test_only_literal_acls_of_replicated_topics_are_copied() -> None:
    rules = [
        acl("topic1"),
        acl("topic1", operation="ALL"),
        acl("topic1", operation="WRITE"),
        acl("other"),
        acl("target.topic1"),
        acl("topic", pattern_type="PREFIXED"),
        acl("topic1", resource_type="GROUP"),
        acl("topic2", operation="DESCRIBE"),
    ]
    assert target_acl_bindings(rules, FLOW) == (
        acl("source.topic1"),
        acl("source.topic2", operation="DESCRIBE"),
    )


def test_an_acl_for_all_topics_becomes_one_for_a_topic_with_a_star_in_its_name() -> None:
    everything = selection(topic_filter(topics=".*"))
    assert target_acl_bindings([acl("*")], everything) == (acl("source.*"),)
    identity = selection(
        topic_filter(topics=".*"), IdentityReplicationPolicy(source_alias="source")
    )
    assert target_acl_bindings([acl("*")], identity) == (acl("*"),)


rules = st.builds(
    acl,
    name=st.sampled_from(["topic1", "topic2", "other", "*", "target.topic1"]),
    permission=st.sampled_from(["ALLOW", "DENY"]),
    operation=st.sampled_from(["ALL", "READ", "WRITE", "DESCRIBE", "ALTER"]),
    pattern_type=st.sampled_from(["LITERAL", "PREFIXED"]),
    resource_type=st.sampled_from(["TOPIC", "GROUP"]),
)


@settings(max_examples=30)
@given(st.lists(rules, max_size=8))
def test_no_copied_acl_permits_writing(listed: list[AclBinding]) -> None:
    copies = target_acl_bindings(listed, FLOW)
    assert not any(
        copy.permission == "ALLOW" and copy.operation in ("WRITE", "ALL") for copy in copies
    )
    assert len(set(copies)) == len(copies) <= len(listed)
