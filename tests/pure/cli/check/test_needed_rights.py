"""The rights that flows need, from an mm2.properties."""

from __future__ import annotations

from sparkmirror.cli.check.clients_and_rights import dedicated_file_needs
from sparkmirror.cli.check.needed_rights import ClientNeeds
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties

FILE = """
clusters = a, b
a.bootstrap.servers = a:9092
b.bootstrap.servers = b:9092
a->b.enabled = true
a->b.topics = orders, invoices-.*
"""


def needs(more: str = "") -> list[ClientNeeds]:
    file = parse_properties((FILE + more).encode(), file="mm2.properties")
    return dedicated_file_needs(MirrorMakerConfig.open(file, {}))


def rights(more: str = "") -> set[tuple[str, str, str]]:
    """Return cluster, operation and resource of every right on a resource with a name."""
    return {
        (need.cluster, right.operation.name, str(right.resource))
        for need in needs(more)
        for right in need.rights
    }


def test_a_flow_needs_rights_on_the_topics_of_its_worker_its_group_and_its_transactional_ids() -> (
    None
):
    found = rights()
    assert ("b", "WRITE", "topic mm2-configs.a.internal") in found
    assert ("b", "READ", "group a-mm2") in found
    assert ("b", "WRITE", "transactional-id a-mm2-MirrorSourceConnector-*") in found
    assert ("b", "WRITE", "topic a.checkpoints.internal") in found
    assert ("b", "WRITE", "topic heartbeats") in found
    assert ("a", "WRITE", "topic mm2-offset-syncs.b.internal") in found


def test_the_location_of_offset_syncs_moves_their_rights() -> None:
    found = rights("offset-syncs.topic.location = target\n")
    assert ("b", "WRITE", "topic mm2-offset-syncs.a.internal") in found
    assert not any(cluster == "a" for cluster, _, name in found if "offset-syncs" in name)


def test_dead_letters_need_the_rights_to_create_their_topic_and_to_write_to_it() -> None:
    key = "a->b.sparkmirror.errors.deadletterqueue.topic.name"
    found = {op for cluster, op, name in rights(f"{key} = failed\n") if name == "topic failed"}
    assert found == {"CREATE", "DESCRIBE", "WRITE"}


def test_only_a_flow_that_syncs_acls_needs_rights_on_the_cluster() -> None:
    assert ("a", "DESCRIBE", "the cluster") in rights()
    assert not any(
        name == "the cluster" for *_, name in rights("sync.topic.acls.enabled = false\n")
    )


def test_only_a_flow_that_writes_group_offsets_needs_groups_at_the_target() -> None:
    def targets(more: str = "") -> list[str]:
        return [need.cluster for need in needs(more) for _ in need.selected_groups]

    assert targets() == ["a"]
    assert targets("sync.group.offsets.enabled = true\n") == ["a", "b"]


def test_topics_that_the_config_names_in_full_are_known_without_a_list() -> None:
    named = {topics.named for need in needs() for topics in need.selected_topics}
    assert named == {("orders",)}


def test_a_disabled_heartbeat_connector_needs_nothing() -> None:
    found = rights("emit.heartbeats.enabled = false\n")
    assert not any("heartbeats" in name for *_, name in found)


def test_exactly_once_needs_the_transactional_id_of_the_leader() -> None:
    found = rights("b.exactly.once.source.support = enabled\n")
    assert ("b", "WRITE", "transactional-id connect-cluster-a-mm2") in found


def test_no_repr_shows_a_secret() -> None:
    line = "a.sasl.jaas.config = x.PlainLoginModule required username=u password=hunter2;\n"
    assert "hunter2" not in repr(needs(line))
