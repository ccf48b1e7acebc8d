"""The options of the data source: those of Spark's own Kafka source and sink, where they fit. Pure.

Option names have Spark's spelling and are not case-sensitive. `kafka.<property>` is a property of
Kafka's clients. An option that is not in these tables is refused: a misspelt one would be ignored
without a sign. Values of client properties may be secrets, so no message and no repr has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.datasource.offset_positions import OffsetPositions, parse_positions
from sparkmirror.datasource.subscription import (
    SUBSCRIPTION_OPTIONS,
    Subscription,
    parse_subscription,
)
from sparkmirror.errors import ConfigError, ConfigFault
from sparkmirror.wire.protocol.synchronous.synchronous_fetch import FETCH_BYTES
from sparkmirror.wire.protocol.topics.offsets import EARLIEST, LATEST

FORMAT = "sparkmirror-kafka"
PREFIX = "kafka."
STARTING, ENDING = "startingOffsets", "endingOffsets"
FAIL_ON_DATA_LOSS, INCLUDE_HEADERS = "failOnDataLoss", "includeHeaders"
MIN_PARTITIONS, MAX_OFFSETS = "minPartitions", "maxOffsetsPerTrigger"
TOPIC = "topic"

_READ_OPTIONS = (
    *SUBSCRIPTION_OPTIONS,
    STARTING,
    FAIL_ON_DATA_LOSS,
    INCLUDE_HEADERS,
    MIN_PARTITIONS,
)
BATCH_READ_OPTIONS = (*_READ_OPTIONS, ENDING)
STREAM_READ_OPTIONS = (*_READ_OPTIONS, MAX_OFFSETS)
WRITE_OPTIONS = (TOPIC,)
_QUERY_OPTIONS = ("checkpointLocation", "queryName")
"""Options of a streaming query. Spark passes them on to the sink."""

_CLIENT_NAMES = (*CLIENT_SECURITY_NAMES, "client.id", CONFIG_PROVIDERS_KEY)
_ISOLATION, _FETCH_BYTES = "isolation.level", "max.partition.fetch.bytes"
_BATCH_SIZE, _DELIVERY_TIMEOUT = "batch.size", "delivery.timeout.ms"
CONSUMER_NAMES = (*_CLIENT_NAMES, _ISOLATION, _FETCH_BYTES)
PRODUCER_NAMES = (
    *_CLIENT_NAMES,
    "acks",
    "enable.idempotence",
    "compression.type",
    _BATCH_SIZE,
    _DELIVERY_TIMEOUT,
)
_FIXED = {"acks": ("all", "-1"), "enable.idempotence": ("true",)}
_BOOTSTRAP = "bootstrap.servers"

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
        return cls(
            client=ClientOptions(properties=properties),
            subscription=parse_subscription(values),
            starting=parse_positions(STARTING, values.get(STARTING, starting), excluded=excluded),
            ending=parse_positions(ENDING, values.get(ENDING, "latest"), excluded=EARLIEST),
            fail_on_data_loss=_boolean(values, FAIL_ON_DATA_LOSS, default=True),
            include_headers=_boolean(values, INCLUDE_HEADERS, default=False),
            min_partitions=_number(values, MIN_PARTITIONS) or 0,
            max_offsets_per_trigger=_number(values, MAX_OFFSETS),
            read_committed=_is_read_committed(properties),
            fetch_bytes=_number(values, PREFIX + _FETCH_BYTES) or FETCH_BYTES,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where to write, and how."""

    client: ClientOptions
    topic: str | None
    batch_size: int
    delivery_timeout_s: float

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
        name = by_lower.get(option.lower())
        if name is None and option.lower().startswith(f"{PREFIX}{CONFIG_PROVIDERS_KEY}."):
            name = option
        if name is None:
            faults.append(ConfigFault(option, _unknown_text(option, names)))
        else:
            values[name] = value
    if faults:
        raise ConfigError(faults)
    return values


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


def _is_read_committed(properties: dict[str, str]) -> bool:
    levels = {"read_committed": True, "read_uncommitted": False}
    level = properties.pop(_ISOLATION, "read_uncommitted").strip().lower()
    if level not in levels:
        name = PREFIX + _ISOLATION
        raise ConfigError.of(name, f"{name} must be one of {', '.join(levels)}")
    return levels[level]


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
