"""What a validation of a file finds: faults, which stop a start, and notices, which do not.

Collects findings, sorts them by line and merges equal ones. Also holds the notices that any kind of
file may get.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import HIDDEN, Password
from sparkmirror.config.secrets.redaction import redact_value


@dataclass(frozen=True, slots=True, kw_only=True)
class FileError:
    """One fault of a file: its key, its line, and the parts of flows that it affects."""

    key: str
    line: int | None
    message: str
    locations: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """All findings, in the order of the file."""

    errors: tuple[FileError, ...]
    notices: tuple[Notice, ...]


class FindingsCollector:
    """Collects the findings of one file. Equal faults of several parts become one."""

    def __init__(self, file: str, lines: Mapping[str, int]) -> None:
        self._file = file
        self._lines = lines
        self._locations: dict[tuple[str, int | None, str], list[str]] = {}
        self._notices: dict[Notice, None] = {}

    def add_error(self, location: str, key: str, line: int | None, message: str) -> None:
        """Add a fault."""
        locations = self._locations.setdefault((key, line, message), [])
        if location not in locations:
            locations.append(location)

    def line(self, key: str) -> int | None:
        """The line of a key."""
        return self._lines.get(key)

    def has_other_error(self, key: str, message: str) -> bool:
        """Whether the key has a fault with another message."""
        return any(known == key and text != message for known, _, text in self._locations)

    def add_notices(self, notices: Iterable[Notice]) -> None:
        """Add notices. A notice without a line gets the line of its key."""
        for notice in notices:
            line = self._lines.get(notice.key) if notice.line is None else notice.line
            self._notices[replace(notice, file=self._file, line=line)] = None

    def report(self) -> ValidationReport:
        """Everything so far. Findings without a line come first."""
        errors = [
            FileError(key=key, line=line, message=message, locations=tuple(locations))
            for (key, line, message), locations in self._locations.items()
        ]
        return ValidationReport(
            errors=tuple(sorted(errors, key=lambda error: error.line or 0)),
            notices=tuple(sorted(self._notices, key=lambda notice: notice.line or 0)),
        )


def plain_text_secret_notices(config: Mapping[str, str]) -> Iterator[Notice]:
    """Yield a notice for each secret that the file itself contains."""
    for key, value in config.items():
        if value and HIDDEN in redact_value(key, value):
            yield Notice(
                kind=NoticeKind.IN_PLAIN_TEXT,
                message="holds a secret in plain text; ${file:...} would keep it elsewhere",
                key=key,
            )


def repeated_item_notice(key: str, line: int | None) -> Notice:
    """The notice for a list that contains an item twice."""
    message = "contains an item twice; it is read once"
    return Notice(kind=NoticeKind.REPEATED_ITEM, message=message, key=key, line=line)


def login_module_notices(client: Mapping[str, ParsedValue], key: str) -> tuple[Notice, ...]:
    """The notices about the login module of a SASL client. ConfigError if it is malformed."""
    text = client.get(jaas.SASL_JAAS_CONFIG)
    if not str(client.get("security.protocol")).upper().startswith("SASL_") or text is None:
        return ()
    assert isinstance(text, Password)
    _, notices = jaas.parse_login_module(text.value, key)
    return notices
