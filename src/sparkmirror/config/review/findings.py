"""What a review of a file finds: objections that stop it, notices that do not.

Knows how findings are collected, put in the order of the file and told once, and the remarks that
fit any file. What is right or wrong is for the reviews to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.files.properties import Properties
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import HIDDEN, Password
from sparkmirror.config.secrets.redaction import redact_value


@dataclass(frozen=True, slots=True, kw_only=True)
class FileError:
    """One fault of a file: the key and line it comes from, and the places it shows up in."""

    key: str
    line: int | None
    message: str
    locations: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """What was found, in the order of the file."""

    errors: tuple[FileError, ...]
    notices: tuple[Notice, ...]


class FindingsCollector:
    """Collects what is found about one file. An objection met in many places is told once."""

    def __init__(self, file: Properties) -> None:
        self._file = file
        self._locations: dict[tuple[str, int | None, str], list[str]] = {}
        self._notices: dict[Notice, None] = {}

    def add_error(self, place: str, key: str, line: int | None, message: str) -> None:
        """Take down an objection."""
        places = self._locations.setdefault((key, line, message), [])
        if place not in places:
            places.append(place)

    def add_notices(self, notices: Iterable[Notice]) -> None:
        """Take down notices, and where they belong if they do not know it themselves."""
        for notice in notices:
            line = self._file.lines.get(notice.key) if notice.line is None else notice.line
            self._notices[replace(notice, file=self._file.file, line=line)] = None

    def report(self) -> ValidationReport:
        """Everything so far. What has no line comes first."""
        objections = [
            FileError(key=key, line=line, message=message, locations=tuple(places))
            for (key, line, message), places in self._locations.items()
        ]
        return ValidationReport(
            errors=tuple(sorted(objections, key=lambda objection: objection.line or 0)),
            notices=tuple(sorted(self._notices, key=lambda notice: notice.line or 0)),
        )


def plain_text_secret_notices(file: Properties) -> Iterator[Notice]:
    """Point out secrets that are written into the file."""
    for key, value in file.mapping.items():
        if value and HIDDEN in redact_value(key, value):
            yield Notice(
                kind=NoticeKind.IN_PLAIN_TEXT,
                message="holds a secret in plain text; ${file:...} would keep it elsewhere",
                key=key,
            )


def repeated_item_notice(key: str, line: int | None) -> Notice:
    """Point out a list that says something twice, perhaps by mistake."""
    message = "says something twice; it is read once"
    return Notice(kind=NoticeKind.REPEATED_ITEM, message=message, key=key, line=line)


def login_module_notices(client: Mapping[str, ParsedValue], key: str) -> tuple[Notice, ...]:
    """Judge the login module of a client that needs one. ConfigError if it cannot be used."""
    text = client.get(jaas.SASL_JAAS_CONFIG)
    if not str(client.get("security.protocol")).upper().startswith("SASL_") or text is None:
        return ()
    assert isinstance(text, Password)
    module, notices = jaas.parse_login_module(text.value, key)
    mechanism = str(client.get("sasl.mechanism") or "GSSAPI")
    if jaas.LOGIN_MODULES.get(mechanism) == module.class_name:
        return notices
    # Neither is quoted: both may have been fetched.
    message = (
        "cannot be used to log in here: sasl.mechanism and its login module must be one of "
        f"{', '.join(f'{name} with {known}' for name, known in jaas.LOGIN_MODULES.items())}"
    )
    return (*notices, Notice(kind=NoticeKind.JAAS, message=message, key=key))
