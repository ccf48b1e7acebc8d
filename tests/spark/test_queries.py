"""Queries in SQL and PySpark: checked by Spark, shown by examples, and a flow that is killed."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.cli.transform.trial import try_transformations
from sparkmirror.copy.task.transform.record_evaluator import FailedRow, RecordRow, RoutedRecord
from sparkmirror.engine.supervisor.query_request import QueryRequest
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.records import Record
from tests.support.cli.mirror_process import (
    SPARK_TIMEOUT_S,
    MirrorProcess,
    connector_path,
    running_worker,
)
from tests.support.cli.property_files import worker_properties
from tests.support.cli.transforms_page import (
    FUNCTION_MODULES,
    SPARK_EXAMPLES,
    connector_config,
    source_record,
)
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.bulk_reader import read_partitions
from tests.support.processes import session_processes
from tests.support.spark import query_slot
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.spark.observed_driver import PYTHON_WORKER
from tests.support.spark.spark_answers import SparkAnswers, running_spark_answers
from tests.support.waiting import wait_until

SQL = "sparkmirror.transform.sql"
FUNCTION = "sparkmirror.transform"
RULES = """
import pandas as pd
from pyspark.sql import functions as F

def limited(records):
    return records.limit(1)

def counted(records):
    return records.groupBy("key").count()

@F.udf("string")
def reversed_text(value):
    return value.decode()[::-1]

def with_udf(records):
    kept = records.where(F.col("key").isNotNull())
    return kept.withColumn("value", F.upper(reversed_text("value")))

def nothing(records):
    return None

def with_pandas_udf(records):
    @F.pandas_udf("string")
    def uppercase(values: pd.Series) -> pd.Series:
        return values.str.decode("utf-8").str.upper()

    return records.where(F.col("key").isNotNull()).withColumn("value", uppercase("value"))

def without_pandas(records):
    import a_package_that_is_not_installed

def in_pandas(records):
    return records.mapInPandas(lambda batches: batches, records.schema)

def by_key(records):
    return records.withColumn("topic", F.coalesce(F.col("key").cast("string"), "topic"))
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a program that may import the modules of this test and of the page."""
    directory = tmp_path_factory.mktemp("modules")
    for name, text in {**FUNCTION_MODULES, "more_rules": RULES}.items():
        (directory / f"{name}.py").write_text(text, "utf-8")
    names = ",".join([*FUNCTION_MODULES, "more_rules"])
    root = str(Path(__file__).parents[2] / "src")
    return {
        "PYTHONPATH": os.pathsep.join([str(directory), root]),
        "SPARKMIRROR_PLUGIN_MODULES": names,
    }


@pytest.fixture(scope="module")
def spark(
    modules: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkAnswers]:
    with running_spark_answers(tmp_path_factory.mktemp("spark"), modules) as running:
        yield running


@pytest.mark.parametrize(("lines", "shown"), SPARK_EXAMPLES)
def test_the_page_shows_what_queries_make_of_records(
    spark: SparkAnswers, lines: str, shown: str
) -> None:
    config = connector_config(lines)
    for block in shown.strip().split("\n\n"):
        topic, record = source_record(block)
        trial = try_transformations(config, topic, [record], spark)
        (tried,) = trial.records
        assert [line.rstrip() for line in tried.text_lines()] == block.splitlines()
        assert trial.lane.startswith("rows: Spark evaluates")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT * FROM records ORDER BY offset", "has the operator Sort;"),
        ("SELECT * FROM records LIMIT 3", "has the operator GlobalLimit;"),
        ("SELECT DISTINCT * FROM records", "has the operator Distinct;"),
        ("SELECT max(value) AS value FROM records", "has the operator Aggregate;"),
        ("SELECT key, count(*) AS n FROM records GROUP BY key", "has the operator Aggregate;"),
        ("SELECT *, explode(array(1)) AS n FROM records", "has the operator Generate;"),
        ("SELECT a.* FROM records a JOIN records b ON true", "has the operator Join;"),
        ("SELECT * FROM records UNION ALL SELECT * FROM records", "has the operator Union;"),
        ("SELECT * FROM records TABLESAMPLE (5 PERCENT)", "has the operator Sample;"),
        ("SELECT *, row_number() OVER (ORDER BY offset) AS n FROM records", "operator Window;"),
        ("SELECT * FROM records WHERE offset IN (SELECT 1)", "subquery"),
        ("SELECT * FROM csv.`/etc/passwd`", "write FROM records"),
        ("DROP TABLE records", "has the operator Drop"),
        ("SET spark.sql.ansi.enabled=false", "has the operator SetCommand;"),
        ("SELECT * FROM records WHERE rand() > 0.5", "has rand, which may give"),
        ("SELECT * FROM records WHERE timestamp < now()", "which may give the same record other"),
        ("SELECT * FROM records WHERE false", "keeps no record"),
        ("SELECT * EXCEPT (topic), 1 AS topic FROM records", "gives topic the type int"),
        ("SELECT * EXCEPT (offset), 1L AS offset FROM records", "gives offset another value"),
        ("SELECT * EXCEPT (value), 1 AS value FROM records", "gives value the type int"),
        ("SELECT value FROM records", "gives no column key"),
        ("SELECT nowhere FROM records", "nowhere"),
        ("SELEC", "SELEC"),
    ],
)
def test_a_query_that_does_not_fit_a_mirror_is_refused(
    spark: SparkAnswers, query: str, sentence: str
) -> None:
    error = spark.sql(query).error
    assert error.startswith(SQL)
    assert sentence in error


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("more_rules:limited", "has the operator GlobalLimit;"),
        ("more_rules:counted", "has the operator Aggregate;"),
        ("more_rules:nothing", "returned NoneType; it must return a DataFrame"),
        ("more_rules:absent", "cannot be loaded"),
        ("more_rules:in_pandas", "has the operator MapInPandas;"),
        (
            "more_rules:without_pandas",
            "more_rules:without_pandas failed: ModuleNotFoundError: No module named",
        ),
        ("os:system", "loads no plug-in of the module os"),
    ],
)
def test_a_function_that_does_not_fit_a_mirror_is_refused(
    spark: SparkAnswers, function: str, sentence: str
) -> None:
    assert sentence in spark(QueryRequest(transforms={FUNCTION: function})).error


def evaluated(spark: SparkAnswers, query: str, *records: Record) -> list[Any]:
    rows = tuple((0, RecordRow(record, 0)) for record in records)
    request = QueryRequest(transforms={SQL: query}, topic="A.t", rows=rows)
    answer = spark(request)
    assert not answer.error
    return list(answer.outcomes)


def test_a_row_that_fails_has_the_error_of_spark_and_concerns_no_other(
    spark: SparkAnswers,
) -> None:
    query = (
        "SELECT * EXCEPT (value), CAST(CAST(CAST(value AS STRING) AS INT) + 1 AS STRING) AS value"
        " FROM records WHERE key IS NOT NULL"
    )
    first, failed, last = evaluated(
        spark,
        query,
        Record(1, 5, b"k", b"7"),
        Record(2, 5, b"k", b"seven"),
        Record(3, 5, None, b"seven"),
    )
    assert first == Record(1, 5, b"k", b"8")
    assert isinstance(failed, FailedRow)
    assert failed.error_class == "org.apache.spark.SparkNumberFormatException"
    assert failed.message.startswith("[CAST_INVALID_INPUT] The value 'seven'")
    assert last is None, "a column is not computed for a row that WHERE leaves out"


def test_what_a_query_does_not_change_keeps_its_bytes(spark: SparkAnswers) -> None:
    headers = ((b"\xff", b"1"), (b"a", b"1"), (b"a", None))
    record = Record(9, 1_700_000_000_123, b"\xfe", b"\xff", headers)
    query = "SELECT * FROM records WHERE headers['a'] IS NULL AND topic = 'A.t' AND offset = 9"
    assert evaluated(spark, query, record) == [record]
    times = "SELECT * EXCEPT (timestamp), timestamp + INTERVAL 1 SECOND AS timestamp FROM records"
    assert evaluated(spark, times, record) == [record._replace(timestamp=1_700_000_001_123)]
    empty = "SELECT timestamp, NULL AS key, NULL AS value, map() AS headers FROM records"
    assert "gives headers the type" in spark.sql(empty).error
    texts = "SELECT timestamp, NULL AS key, 'ä' AS value, map('h', 'b') AS headers FROM records"
    assert evaluated(spark, texts, record) == [
        Record(9, 1_700_000_000_123, None, "ä".encode(), ((b"h", b"b"),))
    ]


def test_a_query_that_computes_topic_gives_it_with_each_record(spark: SparkAnswers) -> None:
    query = (
        "SELECT * EXCEPT (topic), CASE WHEN headers['return'] IS NOT NULL THEN 'returns'"
        " ELSE topic END AS topic FROM records WHERE key IS NOT NULL"
    )
    records = [
        Record(1, 5, b"k", b"a"),
        Record(2, 5, b"k", b"b", ((b"return", b""),)),
        Record(3, 5, None, b"c"),
    ]
    assert evaluated(spark, query, *records) == [
        RoutedRecord(records[0], "A.t"),
        RoutedRecord(records[1], "returns"),
        None,
    ]
    assert spark.sql(query).routes_records
    unchanged = "SELECT * EXCEPT (topic), topic AS topic FROM records WHERE topic = 'A.t'"
    assert not spark.sql(unchanged).routes_records
    rows = tuple((0, RecordRow(record, 0)) for record in records)
    answer = spark(QueryRequest(transforms={FUNCTION: "more_rules:by_key"}, topic="A.t", rows=rows))
    assert not answer.error
    assert answer.routes_records
    assert answer.outcomes == (
        RoutedRecord(records[0], "k"),
        RoutedRecord(records[1], "k"),
        RoutedRecord(records[2], "A.t"),
    )


def test_a_python_function_of_rows_runs_in_the_workers_of_spark(spark: SparkAnswers) -> None:
    records = [
        Record(1, 5, b"k", b"abc"),
        Record(2, 5, b"k", b"\xff"),
        Record(3, 5, None, b"\xff"),
        Record(4, 5, b"k", b"xy"),
    ]
    rows = tuple((0, RecordRow(record, 0)) for record in records)
    transforms = {FUNCTION: "more_rules:with_udf"}
    answer = spark(QueryRequest(transforms=transforms, topic="A.t", rows=rows))
    assert not answer.error
    first, failed, dropped, last = answer.outcomes
    assert (first, dropped, last) == (
        Record(1, 5, b"k", b"CBA"),
        None,
        Record(4, 5, b"k", b"YX"),
    )
    assert isinstance(failed, FailedRow)
    assert "UnicodeDecodeError" in failed.message


def test_a_pandas_udf_gets_the_rows_of_a_batch(spark: SparkAnswers) -> None:
    records = [
        Record(1, 5, b"k", b"abc"),
        Record(2, 5, None, b"no"),
        Record(3, 5, b"k", b"\xff"),
    ]
    rows = tuple((0, RecordRow(record, 0)) for record in records)
    transforms = {FUNCTION: "more_rules:with_pandas_udf"}
    answer = spark(QueryRequest(transforms=transforms, topic="A.t", rows=rows))
    assert not answer.error
    first, dropped, failed = answer.outcomes
    assert (first, dropped) == (records[0]._replace(value=b"ABC"), None)
    assert isinstance(failed, FailedRow)
    assert "UnicodeDecodeError" in failed.message


# -- the Spark of a slot on a cluster ------------------------------------------------------------


def test_a_slot_of_a_cluster_evaluates_queries_in_a_spark_of_its_own(
    modules: dict[str, str], tmp_path: Path
) -> None:
    path = os.pathsep.join([modules["PYTHONPATH"], str(Path(__file__).parents[2])])
    environ = {**modules, "PYTHONPATH": path, "SPARK_HOME": "/nowhere"}
    record = Record(1, 5, b"k", b"seven")
    query = (
        "SELECT * EXCEPT (key, value), CAST(value AS STRING) || 'th' AS value,"
        " CAST(CAST('x' AS INT) AS STRING) AS key FROM records"
    )
    with running_spark_answers(tmp_path, environ, query_slot.__name__) as slot:
        assert evaluated(slot, query, record) == [record._replace(key=None, value=b"seventh")], (
            "with the settings of the driver: the cast of x gives null"
        )
        rows = ((0, RecordRow(record, 0)), (0, RecordRow(Record(2, 5, None, b"no"), 0)))
        request = QueryRequest(transforms={FUNCTION: "more_rules:with_udf"}, topic="A.t", rows=rows)
        assert slot(request).outcomes == (record._replace(value=b"NEVES"), None)
        answer = slot(QueryRequest(transforms={FUNCTION: "more_rules:absent"}))
        assert "failed: sparkmirror.transform more_rules:absent cannot be loaded" in answer.error


# -- a flow that is killed -----------------------------------------------------------------------

PARTITIONS = 2
RECORDS = 2500
SIZE = 1000
BYTES_PER_SECOND = 300_000
"""So slow that everything is killed while records are copied."""
FLOW_QUERY = (
    "SELECT * EXCEPT (value), upper(CAST(value AS STRING)) AS value FROM records"
    " WHERE headers['pii'] IS NULL"
)
ROUTING_QUERY = (
    "SELECT * EXCEPT (topic), CASE WHEN headers['pii'] IS NULL THEN topic"
    " ELSE concat(topic, '.pii') END AS topic FROM records"
)


class QueriedTopic:
    """A topic whose records pass a query, and how far its copy has come."""

    def __init__(self, clusters: MirroredClusters, name: str) -> None:
        self.topic, self.remote = f"{name}.t", f"east.{name}.t"
        self._clusters = clusters
        clusters.create_topic(self.topic, PARTITIONS)
        writer = BatchWriter(clusters.source.access)
        records = [
            record._replace(headers=((b"pii", b""),) if record.offset % 5 == 0 else ())
            for record in numbered_records(range(RECORDS), SIZE)
        ]
        for partition in range(PARTITIONS):
            writer.write_batches(TopicPartition(self.topic, partition), records, batch=20)
        writer.close()

    def expected(self) -> list[tuple[int, object]]:
        """What the query makes of the source's records, read with librdkafka."""
        found = self._read(self.topic, self._clusters.source.bootstrap)
        return [
            (partition, (timestamp, key, value.upper(), headers))
            for partition, (timestamp, key, value, headers) in found
            if not any(name == "pii" for name, _ in headers or [])
        ]

    def copied(self) -> list[tuple[int, object]]:
        """The records of the remote topic, read with librdkafka."""
        return self._read(self.remote, self._clusters.target.bootstrap)

    def expected_by_topic(self) -> dict[str, list[tuple[int, object]]]:
        """The source's records by the topic that ROUTING_QUERY gives them."""
        pii: list[tuple[int, object]] = []
        others: list[tuple[int, object]] = []
        for partition, content in self._read(self.topic, self._clusters.source.bootstrap):
            (pii if content[3] else others).append((partition, content))
        return {self.remote: others, self.pii: pii}

    def copied_by_topic(self) -> dict[str, list[tuple[int, object]]]:
        """The records of both topics at read_committed, the default of librdkafka."""
        bootstrap = self._clusters.target.bootstrap
        return {topic: self._read(topic, bootstrap) for topic in (self.remote, self.pii)}

    @property
    def pii(self) -> str:
        """The topic that gets records with the header `pii`."""
        return f"{self.remote}.pii"

    def is_routed(self) -> bool:
        """Whether as many records are on the target as are expected there."""
        if not {self.remote, self.pii} <= self._clusters.target_topics():
            return False
        return sum(map(len, self.copied_by_topic().values())) >= RECORDS * PARTITIONS

    def wait_for_share(self, share: float) -> None:
        """Wait until so much of the topic is on the target."""
        total = share * RECORDS * PARTITIONS * 4 / 5
        wait_until(lambda: self._target_count() >= total, f"{share} copied", SPARK_TIMEOUT_S)

    def _target_count(self) -> int:
        if self.remote not in self._clusters.target_topics():
            return 0
        return sum(
            self._clusters.target_record_counts(self.topic, self.remote, partitions=PARTITIONS)
        )

    def _read(self, topic: str, bootstrap: str) -> list[tuple[int, Any]]:
        found = read_partitions(topic, PARTITIONS, {"bootstrap.servers": bootstrap})
        return [(record.partition, record.content) for record in found]


def query_config(clusters: MirroredClusters, name: str, query: str) -> dict[str, str]:
    return {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "east",
        "target.cluster.alias": "west",
        "source.cluster.bootstrap.servers": clusters.source.bootstrap,
        "target.cluster.bootstrap.servers": clusters.target.bootstrap,
        "topics": f"{name}.*",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "tasks.max": "2",
        "sparkmirror.bytes.per.second": str(BYTES_PER_SECOND),
        SQL: query,
    }


def kill_slots(program: MirrorProcess) -> None:
    """Kill the Python workers of Spark in which tasks run."""
    (driver,) = program.drivers()
    workers = session_processes(driver.pid, PYTHON_WORKER)
    daemons = {one.pid for one in workers}
    slots = [one for one in workers if one.parent in daemons]
    assert slots
    for slot in slots:
        slot.kill()


def test_flows_with_queries_survive_kills_of_task_driver_worker_and_broker(
    mirrored_clusters: MirroredClusters,
    program_clusters: tuple[Cluster, Cluster],
    tmp_path: Path,
) -> None:
    name = f"q{secrets.token_hex(3)}"
    other = f"r{secrets.token_hex(3)}"
    flow = QueriedTopic(mirrored_clusters, name)
    routed_flow = QueriedTopic(mirrored_clusters, other)
    properties = worker_properties(mirrored_clusters.target, f"group-{name}")
    path = f"{connector_path(name)}/config"
    with running_worker(properties, tmp_path) as program:
        limited = query_config(mirrored_clusters, name, f"{FLOW_QUERY} LIMIT 5")
        refused = program.request("PUT", path, limited)
        assert refused.status == HTTPStatus.BAD_REQUEST
        assert "has the operator GlobalLimit" in refused.message
        program.call_json("PUT", path, query_config(mirrored_clusters, name, FLOW_QUERY))
        routing = query_config(mirrored_clusters, other, ROUTING_QUERY)
        program.call_json("PUT", f"{connector_path(other)}/config", routing)
        flow.wait_for_share(0.1)
        kill_slots(program)
        flow.wait_for_share(0.3)
        (driver,) = program.drivers()
        driver.kill()
        flow.wait_for_share(0.5)
        (broker,) = program_clusters[1].brokers
        program_clusters[1].kill_broker(broker)
        program_clusters[1].start_broker(broker)
        flow.wait_for_share(0.7)
        program.send_signal(signal.SIGKILL)
        program.wait_for_exit(within_s=60)
    with running_worker(properties, tmp_path / "again") as program:
        flow.wait_for_share(1.0)
        program.wait_for_states(name, "RUNNING", "RUNNING", "RUNNING")
        assert flow.copied() == flow.expected()
        wait_until(routed_flow.is_routed, "the query has sent all records", SPARK_TIMEOUT_S)
        assert routed_flow.copied_by_topic() == routed_flow.expected_by_topic()
        states = program.call_json("GET", f"{connector_path(other)}/status")
        assert states["connector"]["state"] == "RUNNING"
        program.stop()
