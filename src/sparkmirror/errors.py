"""Everything sparkmirror raises on purpose.

    MirrorError                    picklable; retriable = False
    ├─ ConfigError                 invalid configuration: one ConfigFault per key
    │  └─ PropertiesError          a .properties file cannot be read; names file and line
    ├─ JavaRegexError              a pattern Java refuses or Python cannot express
    ├─ RequestError                the caller asked for something impossible
    │  ├─ NotFound  AlreadyExists  BadRequest  Conflict  Forbidden
    │  ├─ OffsetsRejected          source offsets that the connector cannot use
    │  ├─ WorkerStarting           the worker has not read its topics yet
    │  ├─ NotLeader  NotOwner      another worker of the group must do it; has its URL
    │  ├─ RebalanceNeeded          the group of workers has not decided who does it yet
    │  └─ RequestFailed            the worker could not do it, or not in time
    │     └─ ConnectRestError      a worker's REST API answered with an HTTP error
    ├─ ClusterError                a request to one Kafka cluster failed
    │  ├─ ClusterUnavailable       retriable
    │  ├─ ClusterTimeout           retriable
    │  ├─ NotAuthorized
    │  ├─ UnsupportedByBroker      the broker's version lacks a feature
    │  ├─ CallCancelled            another thread has ended the call
    │  ├─ RequestRefused           any other Kafka error code; has the code
    │  ├─ RecordsLost              records were deleted before a data source had read them
    │  └─ TopicMissing  TopicRejected  TopicExists  TopicConfigRejected  TooFewBrokers
    ├─ TasksNotPlanned             a connector does not know the work of its tasks yet
    ├─ TooManyTasks                a connector returned more tasks than `tasks.max` allows
    ├─ LeadershipLost              another worker is the leader of the group now
    ├─ NewerWorker                 a worker of the group has state that this one may misread
    ├─ RecordError                 bytes of an internal record that cannot be decoded
    ├─ BatchError                  bytes of a record batch that cannot be trusted or understood
    ├─ TransformError              a transformation or converter of Connect refuses a record
    ├─ RunMapConflict              a copied range that contradicts the run map
    ├─ DriverLost                  the Spark driver, or Spark itself, has died; retriable
    └─ LabError                    Kafka clusters on this computer
       ├─ JavaMissing  JarsMissing
       └─ BrokerFailed

A constructor takes facts and builds the message; the message ends with what to do next. Retry loops
look only at `retriable`, which belongs to the class. Processes send errors to each other, so every
error can be pickled: MirrorError creates the instance again from its constructor arguments. This
module knows no HTTP status, socket or log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self


class MirrorError(Exception):
    """The base class of all errors that sparkmirror raises on purpose."""

    retriable: ClassVar[bool] = False
    _constructor_args: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Store the arguments, so that an error with its own constructor can be pickled."""
        error = super().__new__(cls)
        error._constructor_args = (args, kwargs)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the class and its constructor arguments."""
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
    """An invalid configuration. Holds all faults of all keys, not only the first."""

    def __init__(self, faults: Sequence[ConfigFault], *, where: str = "") -> None:
        self.faults = tuple(faults)
        self.where = where
        lines = "; ".join(fault.message for fault in self.faults)
        super().__init__(f"{where}: {lines}" if where else lines)

    @classmethod
    def of(cls, key: str, message: str, *, where: str = "") -> Self:
        """An error with one fault."""
        return cls([ConfigFault(key, message)], where=where)


class PropertiesError(ConfigError):
    """A .properties file with a syntax error. Names the file and, if known, the line."""

    def __init__(self, file: str, line: int | None, message: str) -> None:
        self.file = file
        self.line = line
        where = file if line is None else f"{file}, line {line}"
        super().__init__([ConfigFault("", message)], where=where)


class JavaRegexError(MirrorError):
    """A regular expression that Java rejects, or that Python cannot express."""

    def __init__(self, pattern: str, position: int, problem: str, instead: str) -> None:
        self.pattern = pattern
        self.position = position
        super().__init__(f"pattern '{pattern}' has {problem} at position {position}; {instead}")


class RequestError(MirrorError):
    """A request that cannot be done."""


class NotFound(RequestError):
    """The named object does not exist."""


class AlreadyExists(RequestError):
    """The name is taken."""


class BadRequest(RequestError):
    """The request is invalid."""


class Conflict(RequestError):
    """The request is valid, but not in the current state."""


class Forbidden(RequestError):
    """The configuration of this worker does not allow the request."""


class RequestFailed(RequestError):
    """The worker failed to do it, or not in time."""


class ConnectRestError(RequestFailed):
    """A worker's REST API answered a request of ours with an HTTP error."""

    def __init__(self, url: str, status: int, body: str) -> None:
        self.status = status
        self.body = body
        super().__init__(f"{url} answered {status}: {body}")


class WorkerStarting(RequestError):
    """The worker has not read its topics yet. The message says what it waits for."""


class NotLeader(RequestError):
    """Only the leader of the group can do it. `url` is the address of its REST API."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(f"This worker is not the leader of its group. The leader is {url}")


class NotOwner(RequestError):
    """Only the worker that runs the connector or task can do it. `url` is its REST API."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(f"This worker does not run the connector or task. Its worker is {url}")


class RebalanceNeeded(RequestError):
    """The group of workers has not decided yet who does it. The text is Connect's."""

    def __init__(self) -> None:
        super().__init__(
            "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        )


class OffsetsRejected(RequestError):
    """Offsets to be altered name a partition or an offset that the connector cannot use."""


class ClusterError(MirrorError):
    """A request to a Kafka cluster failed. `cluster` is its alias or its address."""

    def __init__(self, cluster: str, message: str) -> None:
        self.cluster = cluster
        super().__init__(f"{cluster}: {message}")


class ClusterUnavailable(ClusterError):
    """No broker of the cluster is reachable now."""

    retriable = True


class ClusterTimeout(ClusterError):
    """The cluster did not answer in time."""

    retriable = True


class NotAuthorized(ClusterError):
    """The cluster rejected the request: wrong credentials or a missing ACL."""


class UnsupportedByBroker(ClusterError):
    """The broker is too old, or too new, for the request."""


class CallCancelled(ClusterError):
    """Another thread ended the call: its answer is no longer needed."""

    def __init__(self, cluster: str) -> None:
        super().__init__(cluster, "the call was cancelled")


class RequestRefused(ClusterError):
    """The cluster answered with an error code that has no class of its own here."""

    def __init__(self, cluster: str, message: str, *, code: int) -> None:
        self.code = code
        super().__init__(cluster, message)


class RecordsLost(ClusterError):
    """Records were deleted before a data source had read them: Spark calls that data loss."""

    def __init__(self, cluster: str, losses: Sequence[str]) -> None:
        self.losses = tuple(losses)
        super().__init__(
            cluster,
            f"{'; '.join(self.losses)}. Records were deleted before they were read, or a topic was"
            " replaced: set failOnDataLoss to false to go on without them, or start with a new"
            " checkpoint",
        )


class TopicMissing(ClusterError):
    """The topic does not exist on that cluster."""


class TopicRejected(ClusterError):
    """The cluster rejected the creation or change of a topic."""


class TopicExists(TopicRejected):
    """The cluster rejected the creation of a topic that it has."""


class TopicConfigRejected(TopicRejected):
    """The cluster rejected a topic because of one of its configs."""


class TooFewBrokers(TopicRejected):
    """The cluster rejected a topic because it has fewer brokers than the topic has replicas."""


class TasksNotPlanned(MirrorError):
    """A connector cannot plan its tasks yet. The problem that it has reported says why."""


class TooManyTasks(MirrorError):
    """A connector returned more tasks than `tasks.max` allows."""

    def __init__(self, connector: str, tasks: int, tasks_max: int) -> None:
        super().__init__(
            f"The connector {connector} has generated {tasks} tasks, which is greater than "
            f"{tasks_max}, the maximum number of tasks it is configured to create. This behaviour "
            "should be considered a bug and is disallowed. If necessary, it can be permitted by "
            "reconfiguring the connector with 'tasks.max.enforce' set to false; however, this "
            "option will be removed in a future release of Kafka Connect."
        )


class LeadershipLost(MirrorError):
    """This worker may not write configs: it is not the leader, or no longer."""


class NewerWorker(MirrorError):
    """Another worker of the group is newer, and so is the state that it reads and writes."""

    def __init__(self, worker: str, version: int) -> None:
        super().__init__(
            f"worker {worker} of this group has state of version {version}, which this worker may "
            "misread; install the version of the other worker here too"
        )


class RecordError(MirrorError):
    """Bytes of an internal record (offset sync, checkpoint, ...) that cannot be decoded."""


class BatchError(MirrorError):
    """A record batch that is damaged or unknown. It is never copied."""


class TransformError(MirrorError):
    """An exception of Connect's transformations and converters, with its Java class and text."""

    def __init__(
        self, java_class: str, message: str, java_cause: TransformError | None = None
    ) -> None:
        self.java_class = java_class
        self.java_cause = java_cause
        self.alias = ""
        """The alias of the transformation that failed, if one did."""
        super().__init__(message)


class RunMapConflict(MirrorError):
    """A copied range overlaps ranges that the run map already holds."""


class DriverLost(MirrorError):
    """The Spark driver or Spark itself has died. Another driver can take over."""

    retriable = True


class LabError(MirrorError):
    """A Kafka cluster on this computer failed."""


class JavaMissing(LabError):
    """There is no Java, or it is too old."""


class JarsMissing(LabError):
    """Kafka's jars are not in the cache and cannot be fetched."""


class BrokerFailed(LabError):
    """A broker, or the ZooKeeper of a cluster, did not start or died."""
