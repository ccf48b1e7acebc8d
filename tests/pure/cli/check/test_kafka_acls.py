"""The lines for kafka-acls.sh."""

from __future__ import annotations

from sparkmirror.cli.check.kafka_acls import MAX_NAMES, kafka_acls_lines, operation_name
from sparkmirror.cli.check.needed_rights import (
    CLUSTER,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    READ,
    NeededRight,
    Resource,
    ResourceType,
)
from sparkmirror.cluster.acls import AclOperation

START = (
    "kafka-acls.sh --bootstrap-server b:9092 --command-config admin.properties"
    " --add --allow-principal 'User:CN=mirror, O=x'"
)


def lines(*rights: tuple[Resource, AclOperation]) -> list[str]:
    needed = [NeededRight(resource, operation, "") for resource, operation in rights]
    return kafka_acls_lines("b:9092", "User:CN=mirror, O=x", needed)


def topic(name: str, *, is_prefix: bool = False) -> Resource:
    return Resource(ResourceType.TOPIC, name, is_prefix)


def test_topics_with_the_same_operations_share_a_line() -> None:
    assert lines((topic("b"), READ), (topic("a"), READ), (topic("a"), DESCRIBE)) == [
        f"{START} --operation Read --operation Describe --topic a",
        f"{START} --operation Read --topic b",
    ]
    assert lines((topic("b"), READ), (topic("a"), READ)) == [
        f"{START} --operation Read --topic a --topic b"
    ]


def test_a_prefix_and_the_cluster_have_options_of_their_own() -> None:
    transactional_id = Resource(ResourceType.TRANSACTIONAL_ID, "g-c-", is_prefix=True)
    assert lines((transactional_id, READ), (CLUSTER, DESCRIBE)) == [
        f"{START} --operation Describe --cluster",
        f"{START} --operation Read --resource-pattern-type prefixed --transactional-id g-c-",
    ]


def test_a_line_has_a_limited_number_of_names() -> None:
    made = lines(*((topic(f"t{n:03}"), READ) for n in range(MAX_NAMES + 1)))
    assert [line.count("--topic") for line in made] == [MAX_NAMES, 1]


def test_operations_are_written_as_kafkas_tools_write_them() -> None:
    assert operation_name(DESCRIBE_CONFIGS) == "DescribeConfigs"
