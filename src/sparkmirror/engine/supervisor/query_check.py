"""Checks the query of a connector before the connector is made.

Only Spark can analyse it. So the check starts a short-lived Spark, once for each query. If that
cannot start, the query is not refused: the driver checks it again when the connector starts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.config.tables.transform_additions import DEADLETTERQUEUE_TOPIC
from sparkmirror.copy.job import QUERY_WITH_DEAD_LETTERS
from sparkmirror.engine.supervisor.query_process import ask_spark
from sparkmirror.engine.supervisor.query_request import QueryAnswer, QueryRequest
from sparkmirror.errors import ConfigFault, DriverLost
from sparkmirror.transforms.configuration.dead_letter_and_query_faults import (
    dead_letter_and_query_faults,
)
from sparkmirror.transforms.spark_query import SparkQuery, spark_query, spark_query_settings

log = logging.getLogger(__name__)


class QueryCheck:
    """Finds transformations and queries that cannot be run. Any thread may call it; it blocks."""

    def __init__(
        self,
        environment: Mapping[str, str],
        ask: Callable[[QueryRequest], QueryAnswer] | None = None,
        other_faults: Callable[[Props], Sequence[ConfigFault]] = dead_letter_and_query_faults,
    ) -> None:
        """`ask` answers a request and may raise DriverLost.

        `other_faults` finds what is wrong without Spark.
        """
        self._other_faults = other_faults
        self._ask = ask or partial(ask_spark, environment=environment)
        self._lock = threading.Lock()
        self._answers: dict[SparkQuery, QueryAnswer] = {}

    def faults(self, props: Props) -> Sequence[ConfigFault]:
        """What cannot be run of a source connector's config."""
        faults = self._other_faults(props)
        query = spark_query(props)
        if faults or query is None:
            return faults
        answer = self._answer(query, props)
        if answer.error:
            return [ConfigFault(query.key, answer.error)]
        if answer.routes_records and trim(props.get(DEADLETTERQUEUE_TOPIC) or ""):
            return [ConfigFault(DEADLETTERQUEUE_TOPIC, QUERY_WITH_DEAD_LETTERS)]
        return ()

    def _answer(self, query: SparkQuery, props: Props) -> QueryAnswer:
        """What Spark says of a query."""
        with self._lock:
            if query not in self._answers:
                present = {key: value for key, value in props.items() if value is not None}
                request = QueryRequest(transforms=spark_query_settings(present))
                try:
                    answer = self._ask(request)
                except DriverLost as failure:
                    log.warning("%s was not checked: %s", query.key, failure)
                    return QueryAnswer()
                if answer.error and query.function:
                    return answer  # the module may be changed
                self._answers[query] = answer
            return self._answers[query]
