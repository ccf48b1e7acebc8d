"""Deprecated keys: keys of older Kafka releases, and keys that need a JVM.

A key that Kafka has renamed is read as its successor, unless the successor is set as well. A key
that Kafka has removed without a successor is dropped. Each gets one notice, which tells what to
write instead. Kafka itself ignores such a key without a warning: with an ignored `topics.blacklist`
it mirrors too much.

The caller gives the prefixes that keys may have (`A.`, `A->B.` in a dedicated file).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from sparkmirror.config.notices import Notice, NoticeKind

Text = TypeVar("Text", str, str | None)

RENAMED_KEYS: Final = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Removed in Kafka 4.0, with their successors."""

REMOVED_KEYS: Final = {
    "internal.key.converter": "since Kafka 3.0 internal topics always hold plain JSON",
    "internal.value.converter": "since Kafka 3.0 internal topics always hold plain JSON",
    "use.incremental.alter.configs": "since Kafka 4.0 topic configs are always changed one by one",
    "add.source.alias.to.metrics": "since Kafka 4.0 metrics always carry the source alias",
    "auto.include.jmx.reporter": "since Kafka 4.0 only metric.reporters counts",
}
"""Removed without a successor, with the reason. Keys below the name are removed too."""

IGNORED_KEYS: Final = {
    "plugin.path": "Java plug-ins are not loaded; all that a mirror needs is built in",
    "plugin.discovery": "Java plug-ins are not looked for; all that a mirror needs is built in",
}
"""Keys of Kafka 4.3 that have no effect here. They are kept."""

_HOST, _PORT, _LISTENERS = "rest.host.name", "rest.port", "listeners"
_DEFAULT_PORT: Final = "8083"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigratedConfig(Generic[Text]):
    """A config with current keys only, and the notices about the deprecated ones."""

    props: dict[str, Text]
    notices: tuple[Notice, ...]


def migrate_deprecated_keys(
    props: Mapping[str, Text], prefixes: Iterable[str] = ("",)
) -> MigratedConfig[Text]:
    """Replace or drop the deprecated keys. Does not change `props`."""
    result = dict(props)
    notices: list[Notice] = []
    for prefix in prefixes:
        notices += _rename_keys(result, prefix)
        notices += _replace_rest_host_and_port(result, prefix)
        notices += _remove_keys(result, prefix)
        notices += _ignored_key_notices(result, prefix)
    return MigratedConfig(props=result, notices=tuple(notices))


def _rename_keys(props: dict[str, Text], prefix: str) -> list[Notice]:
    notices = []
    for name, successor in RENAMED_KEYS.items():
        old, new = prefix + name, prefix + successor
        if old not in props:
            continue
        value = props.pop(old)
        if new in props:
            effect = f"ignored, because {new} is set as well; remove it."
        else:
            props[new] = value
            effect = f"read as {new}; write that instead."
        notices.append(_deprecation_notice(old, f"was removed in Kafka 4.0 and is {effect}"))
    return notices


def _replace_rest_host_and_port(props: dict[str, Text], prefix: str) -> list[Notice]:
    """Replace the old host and port by a listener."""
    host, port, new = prefix + _HOST, prefix + _PORT, prefix + _LISTENERS
    old = [key for key in (host, port) if key in props]
    if not old:
        return []
    address = f"http://{props.get(host) or ''}:{props.get(port) or _DEFAULT_PORT}"
    effect = f"ignored, because {new} is set as well; remove it."
    if new not in props:
        props[new] = address
        effect = f"read as part of {new}; write {new}=http://host:port instead."
    for key in old:
        del props[key]
    return [_deprecation_notice(key, f"was removed in Kafka 3.0 and is {effect}") for key in old]


def _remove_keys(props: dict[str, Text], prefix: str) -> list[Notice]:
    notices = []
    # One pass over the file, not one for each name: a file may have many thousand keys.
    names = tuple(prefix + name for name in REMOVED_KEYS)
    likely = [key for key in props if key.startswith(names)]
    for name, reason in REMOVED_KEYS.items():
        old = prefix + name
        gone = [key for key in likely if key == old or key.startswith(f"{old}.")]
        if gone:
            for key in gone:
                del props[key]
            along = f" (with {', '.join(k for k in gone if k != old)})" if gone != [old] else ""
            notices.append(_deprecation_notice(old, f"is ignored{along}: {reason}. Remove it."))
    return notices


def _ignored_key_notices(props: Mapping[str, Text], prefix: str) -> list[Notice]:
    return [
        Notice(kind=NoticeKind.NO_EFFECT, key=prefix + name, message=f"is ignored: {reason}.")
        for name, reason in IGNORED_KEYS.items()
        if prefix + name in props
    ]


def _deprecation_notice(key: str, message: str) -> Notice:
    return Notice(kind=NoticeKind.DEPRECATED_KEY, key=key, message=message)
