"""Everything sparkmirror raises on purpose.

    MirrorError                    picklable; retriable = False
    ├─ ConfigError                 what was said cannot be accepted: one Fault per key
    │  └─ PropertiesError          a .properties file cannot be read; names file and line
    ├─ JavaRegexError              a pattern Java refuses or Python cannot express
    ├─ RequestError                the caller's doing
    │  ├─ NotFound  AlreadyExists  BadRequest  Conflict  Forbidden
    │  ├─ OffsetsRejected          source offsets that the connector cannot take
    │  └─ RequestFailed            the worker could not do it, or not in time
    ├─ ClusterError                talking to one Kafka cluster
    │  ├─ ClusterUnavailable       retriable
    │  ├─ ClusterTimeout           retriable
    │  ├─ NotAuthorized
    │  ├─ UnsupportedByBroker      too old for what was asked
    │  ├─ RequestRefused           any other code in an answer; keeps it
    │  └─ TopicMissing  TopicRejected
    ├─ LeadershipLost              another worker writes the group's configs now
    ├─ RecordError                 bytes of an internal record that cannot be decoded
    ├─ BatchError                  bytes of a record batch that cannot be trusted or understood
    ├─ RunMapConflict              a copied range that contradicts the map of what was copied
    ├─ DriverLost                  the Spark driver, or Spark itself, went away; retriable
    └─ LabError                    the clusters on this computer
       ├─ JavaMissing  JarsMissing
       └─ BrokerFailed

A constructor takes facts and builds the sentence; the sentence ends with what to do next.
`retriable` belongs to the class and is the only thing a retry loop asks. Errors cross process
borders, so each one survives pickling: the root rebuilds an instance from the arguments it was
made with. Nothing here knows an HTTP status, a socket or a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self


class MirrorError(Exception):
    """The root. Catch this to catch everything raised on purpose."""

    retriable: ClassVar[bool] = False
    _constructor_args: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the arguments, so that an error with a rich constructor can be pickled."""
        error = super().__new__(cls)
        error._constructor_args = (args, kwargs)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as: the class, and what it was made with."""
        args, kwargs = self._constructor_args
        return _rebuild, (type(self), args, kwargs)


def _rebuild(cls: type[MirrorError], args: tuple[Any, ...], kwargs: dict[str, Any]) -> MirrorError:
    return cls(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One thing wrong with one key. `message` never contains the value of a secret."""

    key: str
    message: str


class ConfigError(MirrorError):
    """What was said cannot be accepted. Holds every fault of every key, never only the first."""

    def __init__(self, faults: Sequence[ConfigFault], *, where: str = "") -> None:
        self.faults = tuple(faults)
        self.where = where
        lines = "; ".join(fault.message for fault in self.faults)
        super().__init__(f"{where}: {lines}" if where else lines)

    @classmethod
    def of(cls, key: str, message: str, *, where: str = "") -> Self:
        """Build the common case: one fault."""
        return cls([ConfigFault(key, message)], where=where)


class PropertiesError(ConfigError):
    """A .properties file that cannot be read as one. Names the file and, if any, the line."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        self.file = file
        self.line = line
        place = file if line is None else f"{file}, line {line}"
        super().__init__([ConfigFault("", message)], where=place)


class JavaRegexError(MirrorError):
    """A pattern that Java itself refuses, or that cannot be given Java's meaning here."""

    def __init__(self, pattern: str, position: int, problem: str, instead: str) -> None:
        self.pattern = pattern
        self.position = position
        super().__init__(f"pattern '{pattern}' has {problem} at position {position}; {instead}")


class RequestError(MirrorError):
    """The caller asked for something that cannot be done as asked."""


class NotFound(RequestError):
    """The thing named does not exist."""


class AlreadyExists(RequestError):
    """The name is taken."""


class BadRequest(RequestError):
    """The request itself is wrong."""


class Conflict(RequestError):
    """Right request, wrong moment."""


class Forbidden(RequestError):
    """This worker is set up not to do that."""


class RequestFailed(RequestError):
    """The worker could not do what was asked, or not in time."""


class OffsetsRejected(RequestError):
    """Offsets to be altered name a partition or an offset that the connector cannot use."""


class ClusterError(MirrorError):
    """Talking to one Kafka cluster went wrong. `cluster` is its alias or its address."""

    def __init__(self, cluster: str, message: str) -> None:
        self.cluster = cluster
        super().__init__(f"{cluster}: {message}")


class ClusterUnavailable(ClusterError):
    """No broker of the cluster can be reached just now."""

    retriable = True


class ClusterTimeout(ClusterError):
    """The cluster did not answer in time."""

    retriable = True


class NotAuthorized(ClusterError):
    """The cluster refused: wrong credentials or a missing ACL."""


class UnsupportedByBroker(ClusterError):
    """The broker is too old, or too new, for what was asked of it."""


class RequestRefused(ClusterError):
    """The cluster answered a request with an error code that has no class of its own here."""

    def __init__(self, cluster: str, message: str, *, code: int) -> None:
        self.code = code
        super().__init__(cluster, message)


class TopicMissing(ClusterError):
    """The topic does not exist on that cluster."""


class TopicRejected(ClusterError):
    """The cluster refused to create or change a topic."""


class LeadershipLost(MirrorError):
    """This worker may not write configs: it has not claimed that, or another one has since."""


class RecordError(MirrorError):
    """Bytes of an internal record (offset sync, checkpoint, ...) that make no sense."""


class BatchError(MirrorError):
    """Bytes of a record batch that cannot be trusted or understood: never guessed at or sealed."""


class RunMapConflict(MirrorError):
    """A copied range overlaps what the run map already holds: reset it, or say what happened."""


class DriverLost(MirrorError):
    """The Spark driver went away, or Spark under it: another one can take over."""

    retriable = True


class LabError(MirrorError):
    """Something about the Kafka clusters on this computer."""


class JavaMissing(LabError):
    """No Java, or one too old."""


class JarsMissing(LabError):
    """Kafka's jars are not in the cache and cannot be fetched."""


class BrokerFailed(LabError):
    """A broker did not start, or died."""
