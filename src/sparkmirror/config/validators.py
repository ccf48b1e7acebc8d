"""What a value may be, beyond its type.

Each validator knows two texts of Kafka's: how it describes itself (`text`, shown in manuals and
compared with the recorded tables) and what it says of a value it refuses. None of them raises: a
refusal is an answer. None of them knows a key by name.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Protocol

from sparkmirror.config.classes import known_class
from sparkmirror.config.value import Value, invalid, trim
from sparkmirror.errors import JavaRegexError
from sparkmirror.javaregex import compile_java


class Validator(Protocol):
    """Judges a parsed value. Must not raise, must not keep state, must accept None to judge it."""

    @property
    def text(self) -> str:
        """The valid values, in Kafka's words."""

    def fault(self, name: str, value: Value) -> str | None:
        """Say what is wrong with the value of the key called `name`; None if nothing is."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number within bounds, which belong to it."""

    low: float
    high: float | None = None
    may_be_null: bool = False

    @property
    def text(self) -> str:
        return f"[{self.low},...]" if self.high is None else f"[{self.low},...,{self.high}]"

    def fault(self, name: str, value: Value) -> str | None:
        if not isinstance(value, int | float):
            return None if self.may_be_null else invalid(name, value, "Value must be non-null")
        if value < self.low:
            return invalid(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            return invalid(name, value, f"Value must be no more than {self.high}")
        return None


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words, written exactly so."""

    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"[{', '.join(self.words)}]"

    def fault(self, name: str, value: Value) -> str | None:
        if value in self.words:
            return None
        return invalid(name, value, f"String must be one of: {', '.join(self.words)}")


@dataclass(frozen=True, slots=True)
class OneOfAnyCase:
    """One of some words, in upper or lower case."""

    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"(case insensitive) [{', '.join(self.words)}]"

    def fault(self, name: str, value: Value) -> str | None:
        if isinstance(value, str) and value.upper() in self.words:
            return None
        words = ", ".join(self.words)
        return invalid(name, value, f"String must be one of (case insensitive): {words}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list without empty items; of some words only, if words are given.

    Items that occur twice are dropped when the list is read (KIP-1161), so that they cannot be
    wrong here.
    """

    words: tuple[str, ...] = ()
    may_be_empty: bool = True
    may_be_null: bool = False

    @property
    def text(self) -> str:
        return OneOf(self.words).text if self.words else ""

    def fault(self, name: str, value: Value) -> str | None:
        if not isinstance(value, tuple):
            return None if self.may_be_null else f"Configuration '{name}' values must not be null."
        if not value and not self.may_be_empty:
            valid = self.text or "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {valid}"
        if "" in value:
            return f"Configuration '{name}' values must not be empty."
        strangers = [item for item in value if self.words and item not in self.words]
        return OneOf(self.words).fault(name, strangers[0]) if strangers else None


@dataclass(frozen=True, slots=True)
class UniqueAliases:
    """A list of aliases in which none occurs twice."""

    subject: str

    @property
    def text(self) -> str:
        return f"non-null string, unique {self.subject}"

    def fault(self, name: str, value: Value) -> str | None:
        if not isinstance(value, tuple):
            return invalid(name, value, "entry must be non null")
        if len(set(value)) < len(value):
            return invalid(name, value, "Duplicate alias provided.")
        return None


@dataclass(frozen=True, slots=True)
class NonNull:
    """Anything, as long as something is said."""

    text: str = "non-null string"

    def fault(self, name: str, value: Value) -> str | None:
        return invalid(name, value, "entry must be non null") if value is None else None


@dataclass(frozen=True, slots=True)
class NonEmptyString:
    """A string, if given, that is not empty."""

    text: str = "non-empty string"

    def fault(self, name: str, value: Value) -> str | None:
        return invalid(name, value, "String must be non-empty") if value == "" else None


@dataclass(frozen=True, slots=True)
class NonEmptyList:
    """A list that says something."""

    text: str = "non-empty list"

    def fault(self, name: str, value: Value) -> str | None:
        return None if value else invalid(name, value, "Empty list")


@dataclass(frozen=True, slots=True)
class ColonPairs:
    """A list of pairs, old:new."""

    text: str = "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>"

    def fault(self, name: str, value: Value) -> str | None:
        pairs = value if isinstance(value, tuple) else ()
        if all(len(pair.split(":")) == 2 for pair in pairs):
            return None
        return invalid(name, value, "Every item must be a pair old:new")


@dataclass(frozen=True, slots=True)
class ConnectorName:
    """A name fit for a connector. A missing one is reported as missing, not as unfit."""

    text: str = "non-empty string without ISO control characters"

    def fault(self, name: str, value: Value) -> str | None:
        if not isinstance(value, str):
            return None
        if not value:
            return invalid(name, value, "String may not be empty")
        control = [str(ord(char)) for char in value if unicodedata.category(char) == "Cc"]
        if not control:
            return None
        why = "String may not contain control sequences but had the following ASCII chars: "
        return invalid(name, value, why + ", ".join(control))


@dataclass(frozen=True, slots=True)
class JavaRegex:
    """A regular expression in Java's dialect."""

    text: str = "valid regex"

    def fault(self, name: str, value: Value) -> str | None:
        if not isinstance(value, str):
            return invalid(name, value, "Invalid regex: none was given")
        try:
            compile_java(value)
        except JavaRegexError as error:
            return invalid(name, value, f"Invalid regex: {error}")
        return None


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several validators; the first to object speaks."""

    parts: tuple[Validator, ...]

    @property
    def text(self) -> str:
        return ",".join(part.text for part in self.parts)

    def fault(self, name: str, value: Value) -> str | None:
        faults = (part.fault(name, value) for part in self.parts)
        return next((fault for fault in faults if fault), None)


@dataclass(frozen=True, slots=True)
class ClassOf:
    """A class of some kind.

    Refuses the known classes of other kinds. A class that only the resolver knew is taken at its
    word: what it is cannot be seen from here.
    """

    kind: str
    members: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"A concrete subclass of {self.kind}, A class with a public, no-argument constructor"

    def fault(self, name: str, value: Value) -> str | None:
        if not isinstance(value, str) or value in self.members or known_class(value) is None:
            return None
        return invalid(name, value, f"Not a {self.kind.rpartition('.')[2]}")


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """Partitions or replication factor of an internal topic: positive, or -1 for the broker's."""

    subject: str
    text: str

    def fault(self, name: str, value: Value) -> str | None:
        if isinstance(value, int) and (value > 0 or value == -1):
            return None
        return invalid(name, value, f"{self.subject}, or -1 to use the broker's default")


@dataclass(frozen=True, slots=True)
class Urls:
    """Addresses to listen on, at least one."""

    text: str = "List of comma-separated URLs, ex: http://localhost:8080,https://localhost:8443."

    def fault(self, name: str, value: Value) -> str | None:
        if not isinstance(value, tuple) or not value:
            return (
                f"Invalid value for {name}, at least one URL is expected, "
                "ex: http://localhost:8080,https://localhost:8443."
            )
        if any(not trim(url) for url in value):
            return f"Empty URL found when parsing {name} list."
        return None
