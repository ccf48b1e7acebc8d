"""The options of the data source: those of Spark's own Kafka source and sink, where they fit. Pure.

Option names have Spark's spelling and are not case-sensitive. `kafka.<property>` is a property of
Kafka's clients. An option that is not in these tables is refused: a misspelt one would be ignored
without a sign. Values of client properties may be secrets, so no message and no repr has them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.datasource.offset_positions import (
    OffsetPositions,
    parse_positions,
    parse_time,
    parse_times,
)
from sparkmirror.datasource.subscription import (
    SUBSCRIPTION_OPTIONS,
    Subscription,
    parse_subscription,
)
from sparkmirror.errors import ConfigError, ConfigFault
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import FETCH_BYTES
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST

FORMAT = "sparkmirror-kafka"
PREFIX = "kafka."
STARTING, ENDING = "startingOffsets", "endingOffsets"
STARTING_TIME, ENDING_TIME = "startingTimestamp", "endingTimestamp"
STARTING_BY_TIME, ENDING_BY_TIME = "startingOffsetsByTimestamp", "endingOffsetsByTimestamp"
STARTING_BY_TIME_STRATEGY = "startingOffsetsByTimestampStrategy"
FAIL_ON_DATA_LOSS, INCLUDE_HEADERS = "failOnDataLoss", "includeHeaders"
MIN_PARTITIONS, MAX_OFFSETS = "minPartitions", "maxOffsetsPerTrigger"
MAX_RECORDS = "maxRecordsPerPartition"
TOPIC = "topic"

_STARTING_OPTIONS = (STARTING_TIME, STARTING_BY_TIME, STARTING)
_ENDING_OPTIONS = (ENDING_TIME, ENDING_BY_TIME, ENDING)
"""The first one that is set counts, as in Spark's own source."""
_READ_OPTIONS = (
    *SUBSCRIPTION_OPTIONS,
    *_STARTING_OPTIONS,
    STARTING_BY_TIME_STRATEGY,
    FAIL_ON_DATA_LOSS,
    INCLUDE_HEADERS,
    MIN_PARTITIONS,
    MAX_RECORDS,
)
BATCH_READ_OPTIONS = (*_READ_OPTIONS, *_ENDING_OPTIONS)
STREAM_READ_OPTIONS = (*_READ_OPTIONS, MAX_OFFSETS)
WRITE_OPTIONS = (TOPIC,)
_QUERY_OPTIONS = ("checkpointLocation", "queryName")
"""Options of a streaming query. Spark passes them on to the sink."""

_CLIENT_NAMES = (*CLIENT_SECURITY_NAMES, "client.id", CONFIG_PROVIDERS_KEY)
_ISOLATION, _FETCH_BYTES = "isolation.level", "max.partition.fetch.bytes"
_BATCH_SIZE, _DELIVERY_TIMEOUT = "batch.size", "delivery.timeout.ms"
_COMPRESSION = "compression.type"
CONSUMER_NAMES = (*_CLIENT_NAMES, _ISOLATION, _FETCH_BYTES)
PRODUCER_NAMES = (
    *_CLIENT_NAMES,
    "acks",
    "enable.idempotence",
    _COMPRESSION,
    _BATCH_SIZE,
    _DELIVERY_TIMEOUT,
)
_FIXED = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}
_BOOTSTRAP = "bootstrap.servers"

_MAX_INT32 = (1 << 31) - 1

DEFAULT_BATCH_SIZE = 131_072
DEFAULT_DELIVERY_TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The properties of the Kafka client, with placeholders as they are."""

    properties: Mapping[str, str] = field(repr=False)

    @property
    def cluster(self) -> str:
        """The name of the cluster in errors."""
        return self.properties[_BOOTSTRAP]

    @property
    def identity(self) -> Hashable:
        """All properties, to find clients with the same ones. May have secrets."""
        return tuple(sorted(self.properties.items()))

    @property
    def client_id(self) -> str:
        """The name under which brokers see the client."""
        return self.properties.get("client.id", FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What to read, and how."""

    client: ClientOptions
    subscription: Subscription
    starting: OffsetPositions
    ending: OffsetPositions
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int = 0
    max_records_per_partition: int | None = None
    none_at_time_is_latest: bool = False
    """Whether a partition without a record at or after the starting time is read from its end."""
    max_offsets_per_trigger: int | None = None
    read_committed: bool = False
    fetch_bytes: int = FETCH_BYTES

    @classmethod
    def for_batch(cls, options: Mapping[str, str]) -> Self:
        """Read the options of `spark.read`. Raises ConfigError with all unknown options."""
        return cls._from(options, BATCH_READ_OPTIONS, starting="earliest", excluded=LATEST)

    @classmethod
    def for_stream(cls, options: Mapping[str, str]) -> Self:
        """Read the options of `spark.readStream`. Raises ConfigError with all unknown options."""
        return cls._from(options, STREAM_READ_OPTIONS, starting="latest", excluded=None)

    @classmethod
    def _from(
        cls,
        options: Mapping[str, str],
        known: tuple[str, ...],
        *,
        starting: str,
        excluded: int | None,
    ) -> Self:
        values = _known_values(options, known, CONSUMER_NAMES)
        properties = _client_properties(values)
        properties.pop(_ISOLATION, None)
        return cls(
            client=ClientOptions(properties=properties),
            subscription=parse_subscription(values),
            starting=_positions(values, _STARTING_OPTIONS, starting, excluded),
            ending=_positions(values, _ENDING_OPTIONS, "latest", EARLIEST),
            fail_on_data_loss=_boolean(values, FAIL_ON_DATA_LOSS, default=True),
            include_headers=_boolean(values, INCLUDE_HEADERS, default=False),
            min_partitions=_number(values, MIN_PARTITIONS) or 0,
            max_records_per_partition=_number(values, MAX_RECORDS),
            none_at_time_is_latest=_choice(
                values, STARTING_BY_TIME_STRATEGY, {"error": False, "latest": True}
            ),
            max_offsets_per_trigger=_number(values, MAX_OFFSETS),
            read_committed=_choice(
                values, PREFIX + _ISOLATION, {"read_uncommitted": False, "read_committed": True}
            ),
            fetch_bytes=min(_number(values, PREFIX + _FETCH_BYTES) or FETCH_BYTES, _MAX_INT32),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where to write, and how."""

    client: ClientOptions
    topic: str | None
    batch_size: int
    delivery_timeout_s: float

    @property
    def identity(self) -> Hashable:
        """What a producer depends on, to find one with the same options. May have secrets."""
        return self.client.identity, self.batch_size, self.delivery_timeout_s

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """Read the options of `write` and `writeStream`. Raises ConfigError."""
        of_query = {name.lower() for name in _QUERY_OPTIONS}
        of_sink = {name: value for name, value in options.items() if name.lower() not in of_query}
        values = _known_values(of_sink, WRITE_OPTIONS, PRODUCER_NAMES)
        properties = _client_properties(values)
        faults = [
            ConfigFault(
                PREFIX + name,
                f"{PREFIX}{name} must be {allowed[0]}: the sink writes with an idempotent producer;"
                " remove the option",
            )
            for name, allowed in _FIXED.items()
            if properties.pop(name, allowed[0]).strip().lower() not in allowed
        ]
        codec, codecs = (
            properties.get(_COMPRESSION, ""),
            [one.config_name for one in CompressionType],
        )
        if codec and codec.strip() not in codecs and "${" not in codec:
            name = PREFIX + _COMPRESSION
            faults.append(ConfigFault(name, f"{name} must be one of {', '.join(codecs)}"))
        if faults:
            raise ConfigError(faults)
        timeout_ms = _number(values, PREFIX + _DELIVERY_TIMEOUT) or DEFAULT_DELIVERY_TIMEOUT_MS
        return cls(
            client=ClientOptions(properties=properties),
            topic=values.get(TOPIC, "").strip() or None,
            batch_size=_number(values, PREFIX + _BATCH_SIZE) or DEFAULT_BATCH_SIZE,
            delivery_timeout_s=timeout_ms / 1000,
        )


def includes_headers(options: Mapping[str, str]) -> bool:
    """Return whether the rows of a source with these options have headers. Raises ConfigError."""
    by_lower = {name.lower(): value for name, value in options.items()}
    value = by_lower.get(INCLUDE_HEADERS.lower(), "false")
    return _boolean({INCLUDE_HEADERS: value}, INCLUDE_HEADERS, default=False)


def _known_values(
    options: Mapping[str, str], known: Iterable[str], client_names: Iterable[str]
) -> dict[str, str]:
    """Return the values by the names of the tables. Raises ConfigError for all other names."""
    names = [*known, *(PREFIX + name for name in client_names)]
    by_lower = {name.lower(): name for name in names}
    values: dict[str, str] = {}
    faults: list[ConfigFault] = []
    for option, value in options.items():
        name = by_lower.get(option.lower()) or _provider_option(option, options)
        if name is None:
            faults.append(ConfigFault(option, _unknown_text(option, names)))
        else:
            values[name] = value
    if faults:
        raise ConfigError(faults)
    return values


def _provider_option(option: str, options: Mapping[str, str]) -> str | None:
    """Return the name of an option of a config provider, None if it is none.

    Spark passes names in lower case; the provider has its name from `config.providers`.
    """
    prefix = f"{PREFIX}{CONFIG_PROVIDERS_KEY}."
    if not option.lower().startswith(prefix):
        return None
    declared = next((text for key, text in options.items() if key.lower() == prefix[:-1]), "")
    provider, dot, rest = option[len(prefix) :].partition(".")
    names = [name.strip() for name in declared.split(",")]
    provider = next((name for name in names if name.lower() == provider.lower()), provider)
    return f"{prefix}{provider}{dot}{rest}"


def _unknown_text(option: str, names: Iterable[str]) -> str:
    listed = [name for name in names if not name.startswith(PREFIX)]
    close = closest_name(option.lower(), [name.lower() for name in names])
    proper = next((name for name in names if name.lower() == close), None)
    advice = f"did you mean {proper}?" if proper else "remove it."
    return (
        f"{option} is not an option of {FORMAT} here; {advice}"
        f" Options are {', '.join(listed)} and the properties of clients that the page on Spark"
        " lists, as kafka.<property>"
    )


def _client_properties(values: Mapping[str, str]) -> dict[str, str]:
    properties = {
        name.removeprefix(PREFIX): value
        for name, value in values.items()
        if name.startswith(PREFIX)
    }
    if not properties.get(_BOOTSTRAP, "").strip():
        name = PREFIX + _BOOTSTRAP
        raise ConfigError.of(name, f"{name} is missing; name some brokers of the cluster")
    return properties


def _positions(
    values: Mapping[str, str], names: tuple[str, str, str], default: str, excluded: int | None
) -> OffsetPositions:
    """Read the option that counts: a time, times by partition, or offsets."""
    time, times, offsets = names
    if time in values:
        return parse_time(time, values[time])
    if times in values:
        return parse_times(times, values[times])
    return parse_positions(offsets, values.get(offsets, default), excluded=excluded)


def _choice(values: Mapping[str, str], name: str, choices: Mapping[str, bool]) -> bool:
    """Return what a word means. The first choice is the default."""
    word = values.get(name, next(iter(choices))).strip().lower()
    if word not in choices:
        raise ConfigError.of(name, f"{name} must be one of {', '.join(choices)}")
    return choices[word]


def _boolean(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = values.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError.of(name, f"{name} must be true or false")
    return text == "true"


def _number(values: Mapping[str, str], name: str) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise ConfigError.of(name, f"{name} must be a whole number above 0")
    return int(text)
