"""A topic reader asks only the leaders of partitions that are not at their end."""

from __future__ import annotations

from contextlib import closing

from sparkmirror.connect.connectors.shared.compacted_topic_reader import CompactedTopicReader
from sparkmirror.store.topic_reader import TopicReader
from tests.support.kafka.log_brokers import FETCH, TOPIC, running_log_brokers


def values_to_end(reader: TopicReader) -> list[bytes]:
    return sorted(consumed.record.value or b"" for consumed in reader.read_to_end())


def test_an_empty_topic_is_at_its_end_without_a_fetch() -> None:
    with running_log_brokers(2, 4) as cluster, closing(cluster.router()) as router:
        assert values_to_end(TopicReader(router, TOPIC)) == []
        assert cluster.requests_of(FETCH) == []


def test_only_partitions_with_new_records_are_fetched() -> None:
    """A leader without new records would wait for some, and delay the records of the others."""
    with running_log_brokers(3, 6) as cluster, closing(cluster.router()) as router:
        for number in range(6):
            cluster.append(number, b"old %d" % number)
        reader = TopicReader(router, TOPIC)
        assert values_to_end(reader) == [b"old %d" % number for number in range(6)]
        cluster.requests.clear()
        cluster.append(4, b"new", b"newer")
        reader.move_end()
        assert values_to_end(reader) == [b"new", b"newer"]
        assert [(one.broker, one.partitions) for one in cluster.requests_of(FETCH)] == [(1, (4,))]


def test_new_records_are_read_from_time_to_time_without_asking_other_leaders() -> None:
    with running_log_brokers(2, 2) as cluster, closing(cluster.router()) as router:
        cluster.append(0, b"a")
        reader = CompactedTopicReader(router, TOPIC)
        assert [record.value for record in reader.read_new()] == [b"a"]
        assert list(reader.read_new()) == []
        cluster.append(1, b"b")
        assert [record.value for record in reader.read_new()] == [b"b"]
        fetched = [one.partitions for one in cluster.requests_of(FETCH)]
        assert fetched == [(0,), (1,)]


def test_a_moved_partition_is_read_at_its_new_leader() -> None:
    with running_log_brokers(2, 2) as cluster, closing(cluster.router()) as router:
        reader = TopicReader(router, TOPIC)
        cluster.append(0, b"a")
        reader.move_end()
        cluster.move_leader(0, 1)
        assert values_to_end(reader) == [b"a"]
