"""Makes the converters of partitions: plain ones, or with the chain of the connector.

The task and the driver make them from the same settings, so that both convert the same way. The
chain is compiled once. One thread uses a factory and its converters.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Self, TypeAlias
from zoneinfo import ZoneInfo

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.settings import CopySettings
from sparkmirror.copy.task.batch_converter import BatchConverter
from sparkmirror.copy.task.transform.batch_transform import BatchTransform, RecordRoutes
from sparkmirror.copy.task.transform.failed_record_texts import RecordOrigin
from sparkmirror.copy.task.transform.failed_records import FailureReporting, PartitionFailures
from sparkmirror.copy.task.transform.header_transform import HeaderTransform
from sparkmirror.copy.task.transform.query_converter import QueryConverter
from sparkmirror.copy.task.transform.query_topics import QueryTopics
from sparkmirror.copy.task.transform.query_transform import QueryTransform
from sparkmirror.copy.task.transform.record_evaluator import RecordEvaluator
from sparkmirror.copy.task.transform.routed_batches import RoutedBatches, RoutedTopic
from sparkmirror.copy.task.transform.transformed_batches import TransformedBatches
from sparkmirror.copy.task.transform.transforming_converter import TransformingConverter
from sparkmirror.errors import ConfigError
from sparkmirror.transforms.configuration.connector_transformer import record_transformer
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record_transformer import RecordTransformer
from sparkmirror.transforms.spark_query import SparkQuery, query_route, spark_query
from sparkmirror.transforms.static_route import StaticRoute
from sparkmirror.wire.batch.target_limits import TargetLimits

NewEvaluator: TypeAlias = Callable[[CopySettings], RecordEvaluator]
"""Makes the evaluator of a job's query. Raises ConfigError and DriverLost."""


def no_evaluator(settings: CopySettings) -> RecordEvaluator:
    """Refuse: this process has no Spark."""
    query = spark_query(settings.transforms)
    assert query is not None, "there is a query to evaluate"
    raise ConfigError.of(query.key, f"{query.key} needs Spark, and this process has none")


@dataclass(frozen=True, slots=True)
class ConverterFactory:
    """Makes converters. Without a transformer and an evaluator records are copied unchanged."""

    read_committed: bool = True
    chain: str = ""
    """The fingerprint of the chain; empty without one."""
    transformer: RecordTransformer | None = None
    uses_header_lane: bool = True
    """Whether keys and values stay closed for chains that do not need them."""
    reporting: FailureReporting | None = None
    """What is done about records that fail; None, as in a driver: they are only counted."""
    query: SparkQuery | None = None
    evaluator: RecordEvaluator | None = None
    """Evaluates the query."""
    route: StaticRoute = StaticRoute(())
    """The routes by the name of the topic that stand beside the query."""
    internal_topics: tuple[str, ...] = ()
    """The worker's topics, which the query may send no record to."""

    @classmethod
    def for_settings(
        cls, settings: CopySettings, new_evaluator: NewEvaluator = no_evaluator
    ) -> Self:
        """Compile the chain of the settings. Raises ConfigError or TransformError."""
        if not settings.transforms:
            return cls(settings.read_committed)
        query = spark_query(settings.transforms)
        if query is not None:
            return cls(
                settings.read_committed,
                settings.chain,
                query=query,
                evaluator=new_evaluator(settings),
                route=query_route(settings.transforms),
                internal_topics=settings.internal_topics,
            )
        environment = JavaEnvironment(
            now_ms=time.time_ns() // 1_000_000, zone=_zone(settings.transforms_zone)
        )
        transformer = record_transformer(settings.transforms, environment)
        return cls(settings.read_committed, settings.chain, transformer)

    @classmethod
    def for_reconcile(
        cls, settings: CopySettings, new_evaluator: NewEvaluator = no_evaluator
    ) -> Self:
        """Compile the chain for converters that follow an owner who may have tolerated errors.

        They drop records that fail. An owner that did not tolerate them has appended nothing behind
        such a record, so it is found in the same way.
        """
        transforms = {**settings.transforms, "errors.tolerance": "all"}
        return cls.for_settings(
            replace(settings, transforms=transforms if settings.transforms else {}), new_evaluator
        )

    def new_converter(
        self, lease: Lease, limits: TargetLimits, policy_topics: Mapping[str, str]
    ) -> BatchConverter:
        """Return the converter of a task for a lease; a plain one if the lease has no chain.

        `policy_topics` has the names before routes, by source topic, where routes change them.
        """
        if not lease.chain or (self.evaluator is None and self.transformer is None):
            return self.new_plain_converter(lease, limits)
        topic = policy_topics.get(lease.source.topic, lease.target.topic)
        return self._new_transforming_converter(lease, topic, TransformedBatches(limits))

    def _new_transforming_converter(
        self,
        lease: Lease,
        topic: str,
        batches: TransformedBatches | RoutedBatches,
        routes: RecordRoutes | None = None,
    ) -> BatchConverter:
        """`topic` is the name that the replication policy gives, without routes."""
        partition, failures = lease.target.partition, self._new_failures(lease)
        if self.evaluator is not None:
            assert self.query is not None
            query = QueryTransform(
                evaluator=self.evaluator,
                topic=topic,
                partition=partition,
                tolerates_errors=self.query.tolerates_errors,
                topics=QueryTopics(self.route, self.internal_topics),
                routes=routes,
            )
            return QueryConverter(
                batches.limits,
                self.read_committed,
                leader_epoch=lease.source_epoch,
                transform=query,
                query=query,
                batches=batches,
                failures=failures,
            )
        assert self.transformer is not None
        transform = BatchTransform(
            transformer=self.transformer, topic=topic, partition=partition, routes=routes
        )
        headers = None
        needs_headers_only = self.transformer.parts.needs_topic_and_headers_only
        if needs_headers_only and self.uses_header_lane and routes is None:
            headers = HeaderTransform(transform, self.transformer.header_names)
        return TransformingConverter(
            batches.limits,
            self.read_committed,
            leader_epoch=lease.source_epoch,
            transform=transform,
            batches=batches,
            headers=headers,
            failures=failures,
        )

    def _new_failures(self, lease: Lease) -> PartitionFailures | None:
        if self.reporting is None:
            return None
        connector = self.reporting.connector
        origin = RecordOrigin(connector=connector, task=max(lease.task, 0), partition=lease.source)
        return PartitionFailures(self.reporting, origin)

    @property
    def may_route_records(self) -> bool:
        """Whether chain or query may send records of one topic to different topics."""
        if self.evaluator is not None:
            return self.evaluator.routes_records
        return self.transformer is not None and self.transformer.routes_records

    def routes_records(self, lease: Lease) -> bool:
        """Whether the records of a lease may go to different topics."""
        return self.may_route_records and bool(lease.chain)

    def new_routing_converter(
        self,
        lease: Lease,
        limits: TargetLimits,
        policy_topics: Mapping[str, str],
        routed_topics: Mapping[str, RoutedTopic],
    ) -> BatchConverter:
        """Return the converter of a lease whose records may go to different topics.

        `routed_topics` has the other topics that exist; the task changes it.
        """
        batches = RoutedBatches(lease.target, limits, routed_topics)
        topic = policy_topics.get(lease.source.topic, lease.target.topic)
        routes = RecordRoutes(lease.target.topic, batches.is_known)
        return self._new_transforming_converter(lease, topic, batches, routes)

    def new_plain_converter(self, lease: Lease, limits: TargetLimits) -> BatchConverter:
        """Return a converter that changes no record."""
        return BatchConverter(limits, self.read_committed, leader_epoch=lease.source_epoch)


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (LookupError, ValueError):
        raise ConfigError.of(
            "transforms",
            f"{socket.gethostname()} does not know the time zone {name} of the worker; install"
            " tzdata there, or start the worker with TZ=UTC",
        ) from None
