"""The options of the data source: Spark's names, and a sentence for each that does not fit."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.datasource.offset_positions import OffsetPositions
from sparkmirror.datasource.options import (
    BATCH_READ_OPTIONS,
    CONSUMER_NAMES,
    PREFIX,
    PRODUCER_NAMES,
    STREAM_READ_OPTIONS,
    WRITE_OPTIONS,
    SinkOptions,
    SourceOptions,
)
from sparkmirror.datasource.subscription import Subscription
from sparkmirror.errors import ConfigError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST

SERVERS = {"kafka.bootstrap.servers": "one:9092"}
ORDERS = SERVERS | {"subscribe": "orders"}


def test_defaults_are_those_of_sparks_own_source() -> None:
    batch, stream = SourceOptions.for_batch(ORDERS), SourceOptions.for_stream(ORDERS)
    assert batch.starting == OffsetPositions(common=EARLIEST)
    assert batch.ending == OffsetPositions(common=LATEST)
    assert stream.starting == OffsetPositions(common=LATEST)
    for options in (batch, stream):
        assert options.subscription == Subscription(topics=("orders",))
        assert options.fail_on_data_loss
        assert not options.include_headers
        assert not options.read_committed
        assert options.client.properties == {"bootstrap.servers": "one:9092"}


def test_names_are_not_case_sensitive() -> None:
    """Spark passes them on in lower case."""
    options = SourceOptions.for_stream(
        SERVERS
        | {
            "SUBSCRIBEPATTERN": "orders|payments-.*",
            "startingoffsets": '{"orders": {"0": 5, "1": -2}}',
            "maxoffsetspertrigger": "100",
            "includeheaders": "TRUE",
            "failondataloss": "false",
            "minpartitions": "4",
            "kafka.isolation.level": "read_committed",
            "kafka.max.partition.fetch.bytes": "1000",
        }
    )
    assert options.starting.by_partition == {
        TopicPartition("orders", 0): 5,
        TopicPartition("orders", 1): EARLIEST,
    }
    assert options.subscription.includes("payments-7", is_internal=False)
    assert not options.subscription.includes("my-orders", is_internal=False)
    assert not options.subscription.includes("orders", is_internal=True)
    assert options.max_offsets_per_trigger == 100
    assert options.include_headers
    assert not options.fail_on_data_loss
    assert options.min_partitions == 4
    assert options.read_committed
    assert options.fetch_bytes == 1000


def test_assigned_partitions_are_read_and_no_others() -> None:
    options = SourceOptions.for_batch(SERVERS | {"assign": '{"a": [1, 0], "b": [3]}'})
    expected = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 3)]
    assert sorted(options.subscription.assigned) == expected
    assert options.subscription.select([TopicPartition("a", n) for n in range(9)]) == expected[:2]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "set exactly one of subscribe, subscribePattern, assign: none of them is set"),
        ({"subscribe": "a", "assign": "{}"}, "subscribe and assign are set"),
        ({"subscribe": " , "}, "subscribe names no topic"),
        ({"subscribePattern": "("}, "subscribePattern: pattern '\\('"),
        ({"assign": '{"a": 1}'}, 'assign .* is not of a known form; write {"orders": \\[0, 1]}'),
        ({"assign": '{"a": [-1]}'}, "not of a known form"),
        ({"subscribe": "a", "startingOffsets": "first"}, "write earliest, latest or {"),
        ({"subscribe": "a", "startingOffsets": '{"a": {"0": -3}}'}, "not of a known form"),
        ({"subscribe": "a", "startingOffsets": "latest"}, "leaves nothing to read"),
        ({"subscribe": "a", "endingOffsets": '{"a": {"0": -2}}'}, "leaves nothing to read"),
        ({"subscribe": "a", "failOnDataLoss": "yes"}, "failOnDataLoss must be true or false"),
        ({"subscribe": "a", "minPartitions": "0"}, "minPartitions must be a whole number above 0"),
        (
            {"subscribe": "a", "kafka.isolation.level": "all"},
            "kafka.isolation.level must be one of",
        ),
        ({"subscribe": "a", "startingTimestamp": "yesterday"}, "write milliseconds since 1970"),
        (
            {"subscribe": "a", "startingOffsetsByTimestamp": '{"a": {"0": -1}}'},
            "startingOffsetsByTimestamp .* is not of a known form",
        ),
        (
            {"subscribe": "a", "startingOffsetsByTimestampStrategy": "earliest"},
            "startingOffsetsByTimestampStrategy must be one of error, latest",
        ),
        ({"subscribe": "a", "failOnDataLos": "true"}, "did you mean failOnDataLoss?"),
        ({"subscribe": "a", "kafka.group.id": "g"}, "kafka.group.id is not an option of"),
        ({"subscribe": "a", "path": "orders"}, "path is not an option of"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "1"}, "maxOffsetsPerTrigger is not an option"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(
    options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        SourceOptions.for_batch(SERVERS | options)


def test_all_unknown_options_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        SourceOptions.for_stream(ORDERS | {"endingOffsets": "latest", "kafka.linger.ms": "5"})
    assert [fault.key for fault in raised.value.faults] == ["endingOffsets", "kafka.linger.ms"]


def test_bootstrap_servers_are_required() -> None:
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers is missing"):
        SourceOptions.for_batch({"subscribe": "a"})


def test_options_of_the_sink() -> None:
    options = SinkOptions.from_options(
        SERVERS
        | {
            "topic": "orders",
            "checkpointLocation": "/tmp/c",  # noqa: S108
            "kafka.acks": "-1",
            "kafka.enable.idempotence": "true",
            "kafka.compression.type": "lz4",
            "kafka.batch.size": "1000",
            "kafka.delivery.timeout.ms": "500",
        }
    )
    assert (options.topic, options.batch_size, options.delivery_timeout_s) == ("orders", 1000, 0.5)
    assert options.client.properties["compression.type"] == "lz4"
    assert "acks" not in options.client.properties


@pytest.mark.parametrize(
    ("option", "value"), [("kafka.acks", "1"), ("kafka.enable.idempotence", "false")]
)
def test_a_sink_that_may_lose_or_repeat_batches_is_refused(option: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} must be"):
        SinkOptions.from_options(SERVERS | {"topic": "orders", option: value})


def test_no_repr_has_a_client_property_and_the_options_travel() -> None:
    secret = {"kafka.sasl.jaas.config": "planted", "kafka.ssl.keystore.key": "planted"}
    source = SourceOptions.for_batch(ORDERS | secret)
    sink = SinkOptions.from_options(SERVERS | {"topic": "t"} | secret)
    assert "planted" not in repr(source) + repr(sink)
    assert pickle.loads(pickle.dumps(source)) == source
    assert pickle.loads(pickle.dumps(sink)) == sink


def test_config_providers_of_clients_are_known() -> None:
    provider = {
        "kafka.config.providers": "env",
        "kafka.config.providers.env.class": "EnvVarConfigProvider",
    }
    options = SourceOptions.for_batch(ORDERS | provider)
    assert options.client.properties["config.providers.env.class"] == "EnvVarConfigProvider"


def test_a_config_provider_keeps_its_name_although_spark_passes_options_in_lower_case() -> None:
    provider = {
        "kafka.config.providers": "env, vaultFiles",
        "kafka.config.providers.vaultfiles.class": "FileConfigProvider",
        "kafka.config.providers.vaultfiles.param.allowed.paths": "/run",
    }
    properties = SourceOptions.for_batch(ORDERS | provider).client.properties
    assert properties["config.providers.vaultFiles.class"] == "FileConfigProvider"
    assert properties["config.providers.vaultFiles.param.allowed.paths"] == "/run"


def test_a_codec_that_does_not_exist_is_refused_when_the_query_is_planned() -> None:
    codec = {"topic": "t", "kafka.compression.type": "brotli"}
    with pytest.raises(ConfigError, match="kafka.compression.type must be one of none, gzip"):
        SinkOptions.from_options(SERVERS | codec)
    codec["kafka.compression.type"] = "${env:CODEC}"
    properties = SinkOptions.from_options(SERVERS | codec).client.properties
    assert properties["compression.type"] == "${env:CODEC}"


def test_a_limit_of_a_fetch_fits_into_a_request() -> None:
    options = SourceOptions.for_batch(ORDERS | {"kafka.max.partition.fetch.bytes": str(1 << 40)})
    assert options.fetch_bytes == (1 << 31) - 1


def test_clients_are_shared_by_the_same_options_only() -> None:
    other = {"kafka.client.id": "x"}
    first, same = SourceOptions.for_batch(ORDERS), SourceOptions.for_stream(ORDERS)
    assert first.client.identity == same.client.identity
    assert SourceOptions.for_batch(ORDERS | other).client.identity != first.client.identity
    sink = SERVERS | {"topic": "t"}
    identity = SinkOptions.from_options(sink).identity
    assert SinkOptions.from_options(sink | {"topic": "u"}).identity == identity
    for option in ("kafka.batch.size", "kafka.delivery.timeout.ms"):
        assert SinkOptions.from_options(sink | {option: "77"}).identity != identity


def test_the_page_lists_every_option() -> None:
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text("utf-8")
    named = {*BATCH_READ_OPTIONS, *STREAM_READ_OPTIONS, *WRITE_OPTIONS}
    of_clients = {*CONSUMER_NAMES, *PRODUCER_NAMES} - {*CLIENT_SECURITY_NAMES, "client.id"}
    named |= {PREFIX + name for name in of_clients - {CONFIG_PROVIDERS_KEY}}
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []
