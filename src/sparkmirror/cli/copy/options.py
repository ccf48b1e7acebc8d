"""Parses the options of `copy`: rates, times, offsets and policies.

Each function parses one text or raises click.BadParameter; click adds the option's name.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkmirror.copy.job import StartMode, StartPosition
from sparkmirror.errors import ConfigError, JavaRegexError
from sparkmirror.javaregex.pattern import compile_pattern_list
from sparkmirror.mirror.topics.replication_policy import PolicyFactory
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address

T = TypeVar("T")

_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]?)(i?)(?:B(?:/s)?)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_ALIAS = re.compile(r"[A-Za-z0-9._-]+")
_OFFSETS_PREFIX = "offsets:"
_LARGEST_OFFSET = 2**63 - 1
_POLICY_CLASSES = {
    "identity": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "default": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
}


def option_callback(
    read: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    """Make a click callback of a parser; None for an option that is not given."""
    return lambda _context, _parameter, text: None if text is None else read(text)


def parse_servers(text: str) -> str:
    """Read `host:port[,host:port]`."""
    servers = [server.strip() for server in text.split(",") if server.strip()]
    if not servers:
        raise click.BadParameter("name at least one broker as host:port.")
    try:
        for server in servers:
            Address.parse(server)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None
    return ",".join(servers)


def parse_patterns(text: str) -> tuple[str, ...]:
    """Read Java regular expressions with commas between them, as `topics` of MirrorMaker 2."""
    patterns = tuple(pattern.strip() for pattern in text.split(",") if pattern.strip())
    if not patterns:
        raise click.BadParameter("name at least one topic or pattern.")
    try:
        compile_pattern_list(patterns)
    except JavaRegexError as error:
        raise click.BadParameter(f"{error}.") from None
    return patterns


def parse_alias(text: str) -> str:
    """Read the alias of a cluster. It becomes part of topic names."""
    if not _ALIAS.fullmatch(text):
        raise click.BadParameter(
            f"{text!r} cannot be part of a topic's name: use letters, digits, '.', '_' and '-'."
        )
    return text


def parse_name(text: str) -> str:
    """Read the name of a connector."""
    if not text.strip() or not text.isprintable():
        raise click.BadParameter(f"{text!r} is no name for a connector.")
    return text


def parse_rate(text: str) -> int:
    """Read bytes per second: 50MB, 1.5GiB, 800000."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no rate: write 50MB, 1.5GiB or 800000.")
    number, prefix, binary = match.groups()
    if binary and not prefix:
        raise click.BadParameter(f"{text!r} is no rate: write 50MB, 1.5GiB or 800000.")
    rate = int(float(number) * (1024 if binary else 1000) ** _POWERS[prefix.lower()])
    if rate < 1:
        raise click.BadParameter(f"{text!r} would copy nothing: leave it out for no limit.")
    return rate


def parse_start(text: str) -> StartPosition:
    """Read where to start: an end of the log, a time, or a file of offsets."""
    if text in (StartMode.EARLIEST, StartMode.LATEST):
        return StartPosition(at=StartMode(text))
    if text.startswith(_OFFSETS_PREFIX):
        file = Path(text.removeprefix(_OFFSETS_PREFIX))
        return StartPosition(at=StartMode.OFFSETS, offsets=load_offsets(file))
    if text.isdecimal():
        return StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=int(text))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is none of earliest, latest, a time (2026-01-31T12:00:00Z or milliseconds)"
            " and offsets:FILE.json."
        ) from None
    # Kafka's own tools take a time without a zone for UTC.
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=int(zoned.timestamp() * 1000))


def load_offsets(file: Path) -> dict[str, int]:
    """Read `{"orders-0": 12}` or, as Spark writes them, `{"orders": {"0": 12}}`."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise click.BadParameter(f"{file} is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise click.BadParameter(f'{file} must hold an object: {{"orders-0": 12}}.')
    return dict(_flatten_offsets(file, content))


def _flatten_offsets(file: Path, content: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in content.items():
        if isinstance(value, dict):
            for number, offset in value.items():
                yield _parse_offset(file, f"{name}-{number}", offset)
        else:
            yield _parse_offset(file, name, value)


def _parse_offset(file: Path, partition: str, offset: object) -> tuple[str, int]:
    try:
        TopicPartition.parse(partition)
    except ValueError as error:
        raise click.BadParameter(f"{file}: {error}.") from None
    if not isinstance(offset, int) or not 0 <= offset <= _LARGEST_OFFSET or offset is True:
        raise click.BadParameter(
            f"{file}: {partition}: {json.dumps(offset)} is no offset: write the next one to copy."
        )
    return partition, offset


def parse_conf(
    _context: click.Context, _option: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    """Read Spark settings; the last one of a key wins."""
    settings: dict[str, str] = {}
    for text in given:
        key, separator, value = text.partition("=")
        if not separator or not key.startswith("spark."):
            raise click.BadParameter(f"{text!r} is no setting of Spark: write spark.KEY=VALUE.")
        settings[key.strip()] = value.strip()
    return settings


def parse_policy(text: str) -> str:
    """Read `identity`, `default`, a Java class name, or `module:Class`."""
    return _POLICY_CLASSES.get(text.lower(), text)


def import_policy(name: str) -> PolicyFactory:
    """Import a policy named `module:Class`. Raises ConfigError."""
    module, _, member = name.partition(":")
    try:
        factory = getattr(importlib.import_module(module), member)
    except (ImportError, AttributeError) as error:
        key = "replication.policy.class"
        raise ConfigError.of(key, f"{key} {name} cannot be imported: {error}") from error
    policy: PolicyFactory = factory
    return policy
