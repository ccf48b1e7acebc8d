"""What the control plane asks of one cluster, made fit for brokers that come and go.

The library's admin client alone does not survive a rolling restart: it keeps coordinators and
leaders it once knew, and its time-outs are not deadlines. Here every call

- runs in a thread, with a deadline of our own;
- is tried again while its error is a passing one, with the library's memory cleared in between;
- ends in a value of ours or in one of our errors.

An `Admin` may be used by several threads.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from kafka import KafkaAdminClient
from kafka import TopicPartition as LibraryPartition
from kafka.admin import OffsetSpec, UserScramCredentialUpsertion
from kafka.errors import KafkaError

from sparkmirror.cluster import describe_configs, error_translation
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_configs import TopicConfigs
from sparkmirror.cluster.kafka_python_client import connect_client
from sparkmirror.cluster.topics import NewTopic, TopicDescription
from sparkmirror.errors import ClusterError, ClusterTimeout, TopicRejected
from sparkmirror.model import TopicPartition

T = TypeVar("T")
Wanted = TypeVar("Wanted")

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_ALREADY_EXISTS = 36
_INVALID_PARTITIONS = 37
_INITIAL_DELAY_S = 0.1
_MAX_DELAY_S = 1.0
_Client: Any = KafkaAdminClient
_Partition: Any = LibraryPartition
_Credential: Any = UserScramCredentialUpsertion


class ListOffsetsSpec(Enum):
    """A place in a partition."""

    EARLIEST = OffsetSpec.EARLIEST
    LATEST = OffsetSpec.LATEST


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDescription:
    """A broker the cluster knows. A fenced one is registered but does not serve."""

    node_id: int
    host: str
    port: int
    fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterResult:
    """A cluster as it describes itself."""

    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


class TopicResult(NamedTuple):
    """What became of a request about one topic, in the broker's words."""

    name: str
    code: int
    message: str | None


class Admin:
    """The control plane's hands on one cluster. Close it when done."""

    def __init__(self, access: ClusterAccess, timeout_s: float = 30.0) -> None:
        self._access = access
        self._timeout_s = timeout_s
        self._client: Any = None
        self._lock = threading.Lock()

    def describe_cluster(self) -> DescribeClusterResult:
        """Ask for the cluster's id and its brokers."""
        words = self._call("describe the cluster", lambda client: client.describe_cluster())
        brokers = [
            BrokerDescription(
                node_id=int(broker["broker_id"]),
                host=str(broker["host"]),
                port=int(broker["port"]),
                fenced=bool(broker.get("is_fenced", False)),
            )
            for broker in words["brokers"]
        ]
        return DescribeClusterResult(
            cluster_id=str(words["cluster_id"]),
            controller_id=int(words["controller_id"]),
            brokers=tuple(sorted(brokers, key=lambda broker: broker.node_id)),
        )

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        """Describe the topics named, or all. One that does not exist is not in the answer."""
        wanted = None if names is None else sorted(names)
        if wanted == []:
            return {}
        found = self._call("describe topics", lambda client: client.describe_topics(wanted))
        return {
            topic.name: topic
            for topic in (
                TopicDescription.from_kafka_python(words)
                for words in found
                if not words["error_code"]
            )
        }

    def describe_topic(self, name: str) -> TopicDescription:
        """Describe one topic, or raise why that cannot be: it is missing, or not for our eyes."""
        (words,) = self._call(f"describe {name}", lambda client: client.describe_topics([name]))
        if words["error_code"]:
            raise error_translation.error_from_code(words["error_code"], name, self._access.cluster)
        return TopicDescription.from_kafka_python(words)

    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, ClusterError]:
        """Create topics and wait until they can be used; return what went wrong, by topic."""
        deadline = time.monotonic() + self._timeout_s
        sends: Counter[str] = Counter()

        def send(words: Mapping[str, Any], client: Any) -> list[TopicResult]:
            sends.update(words.keys())
            return _parse_results(client.create_topics(words, raise_errors=False)["topics"])

        words = {topic.name: topic.to_kafka_python() for topic in topics}
        results = self._retry_per_topic("create", words, send, deadline)
        # Sent twice, it may exist because of the first time, whose answer was lost.
        ours = {name for name, count in sends.items() if count > 1}
        failed = self._rejections(
            result
            for result in results
            if not (result.code == _ALREADY_EXISTS and result.name in ours)
        )
        made = {topic.name for topic in topics} - failed.keys()
        self._wait_while(
            lambda: self._without_leaders(made), "was created and has no leader", deadline
        )
        return failed

    def create_topic(self, topic: NewTopic) -> None:
        """Create one topic, or raise what went wrong."""
        for error in self.create_topics([topic]).values():
            raise error

    def create_partitions(self, partitions: Mapping[str, int]) -> dict[str, ClusterError]:
        """Give topics more partitions, up to so many in all, and wait until they can be used.

        Returns what went wrong, by topic. One that has as many already is left as it is.
        """
        deadline = time.monotonic() + self._timeout_s
        small = self._topics_to_grow(partitions.keys(), partitions)
        results = self._retry_per_topic("add partitions to", small, _create_partitions, deadline)
        # Only smaller topics are asked to grow, so this code says that one has grown since.
        failed = self._rejections(r for r in results if r.code != _INVALID_PARTITIONS)
        grown = partitions.keys() - failed.keys()
        self._wait_while(
            lambda: set(self._topics_to_grow(grown, partitions)),
            "lacks its new partitions",
            deadline,
        )
        self._wait_while(
            lambda: self._without_leaders(grown), "has partitions without a leader", deadline
        )
        return failed

    def delete_topics(self, names: Collection[str]) -> dict[str, ClusterError]:
        """Delete topics and wait until they are gone; return what went wrong, by topic."""
        if not names:
            return {}
        deadline = time.monotonic() + self._timeout_s
        answer = self._call(
            f"delete {_topic_list(names)}",
            lambda client: client.delete_topics(sorted(names), raise_errors=False),
        )
        failed = self._rejections(_parse_results(answer["topics"]))
        going = set(names) - failed.keys()
        self._wait_while(
            lambda: set(self.describe_topics(going)), "was deleted and is still there", deadline
        )
        return failed

    def describe_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        """Describe all settings of topics, each with where it comes from; or why that cannot be."""
        if not names:
            return {}
        answer = self._call(
            "describe configs", partial(describe_configs.request_topic_configs, sorted(names))
        )
        return describe_configs.read_topic_configs(answer, self._access.cluster)

    def list_offsets(
        self, partitions: Iterable[TopicPartition], position: ListOffsetsSpec
    ) -> dict[TopicPartition, int]:
        """Ask where partitions begin, or where the next record would go."""
        wanted = {_Partition(*partition): position.value for partition in partitions}
        if not wanted:
            return {}
        found = self._call("list offsets", lambda client: client.list_partition_offsets(wanted))
        return {TopicPartition(*key): int(value.offset) for key, value in found.items()}

    def alter_user_scram_credentials(self, users: Mapping[str, str]) -> None:
        """Let users log in with SCRAM, with either of its mechanisms."""
        for mechanism in SCRAM_MECHANISMS:
            wanted = [_Credential(user, mechanism, word) for user, word in users.items()]
            answer = self._call(f"set {mechanism} passwords", partial(_alter_credentials, wanted))
            for user, fault in answer.items():
                if fault is not None:
                    raise ClusterError(self._access.cluster, f"SCRAM password of {user}: {fault}")

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, what: str, call: Callable[[Any], T]) -> T:
        """Try a call until it succeeds, fails for good, or the time is up."""
        deadline = time.monotonic() + self._timeout_s
        pause = _INITIAL_DELAY_S
        while True:
            client = self._get_client(deadline)
            try:
                return _run_with_deadline(deadline, partial(call, client))
            except TimeoutError:
                self._discard_client(client)
                raise ClusterTimeout(
                    self._access.cluster,
                    f"could not {what} within {self._timeout_s:.0f} s:"
                    " look whether the brokers are well",
                ) from None
            except KafkaError as error:
                if not error_translation.is_retriable(error) or time.monotonic() + pause > deadline:
                    raise error_translation.translate(error, self._access.cluster) from error
            except RuntimeError:
                # The library's word for a closed client: another thread may have given it up.
                if self._client is client or time.monotonic() + pause > deadline:
                    raise
            _clear_cached_metadata(client)
            time.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads retries
            pause = min(2 * pause, _MAX_DELAY_S)

    def _get_client(self, deadline: float) -> Any:
        with self._lock:
            if self._client is None:
                left = max(0.1, deadline - time.monotonic())
                # With the library's 5 in flight, calls from many threads fail instead of waiting.
                self._client = connect_client(
                    _Client, self._access, left, max_in_flight_requests_per_connection=1000
                )
            return self._client

    def _discard_client(self, client: Any) -> None:
        """Give up a client that hangs; closing it may hang as well."""
        with self._lock:
            if self._client is client:
                self._client = None
        threading.Thread(target=client.close, daemon=True).start()

    def _retry_per_topic(
        self,
        verb: str,
        wanted: Mapping[str, Wanted],
        send: Callable[[Mapping[str, Wanted], Any], list[TopicResult]],
        deadline: float,
    ) -> list[TopicResult]:
        """Ask for something of each topic, again for those whose error may pass."""
        undecided = dict(wanted)
        results: list[TopicResult] = []
        while undecided:
            for result in self._call(f"{verb} {_topic_list(undecided)}", partial(send, undecided)):
                if (
                    not error_translation.is_code_retriable(result.code)
                    or time.monotonic() > deadline
                ):
                    del undecided[result.name]
                    results.append(result)
            if undecided:
                time.sleep(_INITIAL_DELAY_S)
        return results

    def _wait_while(self, found: Callable[[], set[str]], what: str, deadline: float) -> None:
        """Wait until no topic is found any more; brokers learn of changes a moment later."""
        while left := found():
            if time.monotonic() > deadline:
                raise ClusterTimeout(
                    self._access.cluster,
                    f"{_topic_list(left)} {what}: look whether the brokers are well",
                )
            time.sleep(_INITIAL_DELAY_S)

    def _without_leaders(self, names: Collection[str]) -> set[str]:
        found = self.describe_topics(names)
        return {name for name in names if name not in found or not found[name].has_leaders}

    def _topics_to_grow(
        self, names: Collection[str], partitions: Mapping[str, int]
    ) -> dict[str, int]:
        """Find topics that have fewer partitions than they should; one that is missing has none."""
        found = self.describe_topics(names)
        has = {name: len(found[name].partitions) if name in found else 0 for name in names}
        return {name: partitions[name] for name in names if has[name] < partitions[name]}

    def _rejections(self, results: Iterable[TopicResult]) -> dict[str, ClusterError]:
        return {result.name: self._rejection(*result) for result in results if result.code}

    def _rejection(self, name: str, code: int, message: str | None) -> ClusterError:
        cluster = self._access.cluster
        error = error_translation.error_from_code(
            code, f"{name}: {message}" if message else name, cluster
        )
        return TopicRejected(cluster, str(error)) if type(error) is ClusterError else error


def _run_with_deadline(deadline: float, call: Callable[[], T]) -> T:
    """Run a call in a thread; TimeoutError if it has not ended by the deadline."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed over to the caller's thread
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome.result(timeout=max(0.0, deadline - time.monotonic()))


def _alter_credentials(wanted: Sequence[Any], client: Any) -> dict[str, str | None]:
    answer: dict[str, str | None] = client.alter_user_scram_credentials(wanted)
    return answer


def _clear_cached_metadata(client: Any) -> None:
    """Clear the library's memory of who does what, and have it ask for the brokers anew.

    By itself it goes on asking a coordinator that has moved, a leader that has moved, and a
    broker that is down to create topics.
    """
    client._controller_id = None
    cluster = client._manager.cluster
    cluster._coordinators.clear()
    cluster.request_update()


def _create_partitions(partitions: Mapping[str, int], client: Any) -> list[TopicResult]:
    answer = client.create_partitions(dict(partitions), raise_errors=False)
    return _parse_results(result.to_dict() for result in answer.results)


def _parse_results(words: Iterable[Mapping[str, Any]]) -> list[TopicResult]:
    return [
        TopicResult(str(topic["name"]), int(topic["error_code"]), topic.get("error_message"))
        for topic in words
    ]


def _topic_list(names: Iterable[str]) -> str:
    return f"topic {', '.join(sorted(names))}"
