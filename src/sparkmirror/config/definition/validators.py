"""Validators: which values of its type a key accepts.

A validator has two texts of Kafka: its description (in the manual and in the recorded tables), and
the error for a value that it refuses. It returns the error and never raises.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import ParsedValue, invalid_value_message, trim
from sparkmirror.errors import JavaRegexError
from sparkmirror.javaregex.pattern import compile_java_pattern


class Validator(Protocol):
    """Validates a parsed value, which may be None. Must not raise, must not keep state."""

    @property
    def description(self) -> str:
        """The valid values, in Kafka's words."""

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        """The error of the value of the key `name`; None if the value is valid."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number within bounds, inclusive."""

    low: float
    high: float | None = None
    may_be_null: bool = False

    @property
    def description(self) -> str:
        return f"[{self.low},...]" if self.high is None else f"[{self.low},...,{self.high}]"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, int | float):
            return (
                None
                if self.may_be_null
                else invalid_value_message(name, value, "Value must be non-null")
            )
        if value < self.low:
            return invalid_value_message(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            return invalid_value_message(name, value, f"Value must be no more than {self.high}")
        return None


@dataclass(frozen=True, slots=True)
class ValidString:
    """One of the valid strings."""

    valid_strings: tuple[str, ...]

    @property
    def description(self) -> str:
        return f"[{', '.join(self.valid_strings)}]"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if value in self.valid_strings:
            return None
        return invalid_value_message(
            name, value, f"String must be one of: {', '.join(self.valid_strings)}"
        )


@dataclass(frozen=True, slots=True)
class CaseInsensitiveValidString:
    """One of the valid strings, in upper or lower case."""

    valid_strings: tuple[str, ...]

    @property
    def description(self) -> str:
        return f"(case insensitive) [{', '.join(self.valid_strings)}]"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if isinstance(value, str) and value.upper() in self.valid_strings:
            return None
        words = ", ".join(self.valid_strings)
        return invalid_value_message(
            name, value, f"String must be one of (case insensitive): {words}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidList:
    """A list without empty items; of some words only, if words are given.

    Items that occur twice are dropped when the list is read (KIP-1161), so that they cannot be
    wrong here.
    """

    valid_strings: tuple[str, ...] = ()
    may_be_empty: bool = True
    may_be_null: bool = False

    @property
    def description(self) -> str:
        return ValidString(self.valid_strings).description if self.valid_strings else ""

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, tuple):
            return None if self.may_be_null else f"Configuration '{name}' values must not be null."
        if not value and not self.may_be_empty:
            valid = self.description or "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {valid}"
        if "" in value:
            return f"Configuration '{name}' values must not be empty."
        unknown = [item for item in value if self.valid_strings and item not in self.valid_strings]
        return (
            ValidString(self.valid_strings).validation_error(name, unknown[0]) if unknown else None
        )


@dataclass(frozen=True, slots=True)
class UniqueAliases:
    """A list of aliases in which none occurs twice."""

    subject: str

    @property
    def description(self) -> str:
        return f"non-null string, unique {self.subject}"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, tuple):
            return invalid_value_message(name, value, "entry must be non null")
        if len(set(value)) < len(value):
            return invalid_value_message(name, value, "Duplicate alias provided.")
        return None


@dataclass(frozen=True, slots=True)
class NonNullValidator:
    """Any value except null."""

    description: str = "non-null string"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        return (
            invalid_value_message(name, value, "entry must be non null") if value is None else None
        )


@dataclass(frozen=True, slots=True)
class NonEmptyString:
    """A string, if given, that is not empty."""

    description: str = "non-empty string"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        return (
            invalid_value_message(name, value, "String must be non-empty") if value == "" else None
        )


@dataclass(frozen=True, slots=True)
class NonEmptyListValidator:
    """A list with at least one item."""

    description: str = "non-empty list"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        return None if value else invalid_value_message(name, value, "Empty list")


@dataclass(frozen=True, slots=True)
class NonEmptyStringWithoutControlChars:
    """A name fit for a connector. A missing one is reported as missing, not as unfit."""

    description: str = "non-empty string without ISO control characters"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, str):
            return None
        if not value:
            return invalid_value_message(name, value, "String may not be empty")
        control = [str(ord(char)) for char in value if unicodedata.category(char) == "Cc"]
        if not control:
            return None
        why = "String may not contain control sequences but had the following ASCII chars: "
        return invalid_value_message(name, value, why + ", ".join(control))


@dataclass(frozen=True, slots=True)
class RegexValidator:
    """A regular expression in Java's dialect."""

    description: str = "valid regex"

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, str):
            return invalid_value_message(name, value, "Invalid regex: none was given")
        try:
            compile_java_pattern(value)
        except JavaRegexError as error:
            return invalid_value_message(name, value, f"Invalid regex: {error}")
        return None


@dataclass(frozen=True, slots=True)
class CompositeValidator:
    """Several validators; the first error counts."""

    validators: tuple[Validator, ...]

    @property
    def description(self) -> str:
        return ",".join(part.description for part in self.validators)

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        faults = (part.validation_error(name, value) for part in self.validators)
        return next((fault for fault in faults if fault), None)


@dataclass(frozen=True, slots=True)
class ConcreteSubClassValidator:
    """A class of some kind.

    Refuses the known classes of other kinds. A class that only the resolver knew is taken at its
    word: what it is cannot be seen from here.
    """

    superclass: str
    subclasses: tuple[str, ...]

    @property
    def description(self) -> str:
        return (
            f"A concrete subclass of {self.superclass}, A class with a public, no-argument"
            f" constructor"
        )

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, str) or value in self.subclasses or resolve_class(value) is None:
            return None
        return invalid_value_message(name, value, f"Not a {self.superclass.rpartition('.')[2]}")


@dataclass(frozen=True, slots=True)
class TopicSettingValidator:
    """Partitions or replication factor of an internal topic: positive, or -1 for the broker's."""

    subject: str
    description: str

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if isinstance(value, int) and (value > 0 or value == -1):
            return None
        return invalid_value_message(
            name, value, f"{self.subject}, or -1 to use the broker's default"
        )


@dataclass(frozen=True, slots=True)
class ListenersValidator:
    """Addresses to listen on, at least one."""

    description: str = (
        "List of comma-separated URLs, ex: http://localhost:8080,https://localhost:8443."
    )

    def validation_error(self, name: str, value: ParsedValue) -> str | None:
        if not isinstance(value, tuple) or not value:
            return (
                f"Invalid value for {name}, at least one URL is expected, "
                "ex: http://localhost:8080,https://localhost:8443."
            )
        if any(not trim(url) for url in value):
            return f"Empty URL found when parsing {name} list."
        return None
