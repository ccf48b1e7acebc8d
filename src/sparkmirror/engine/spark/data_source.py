"""The data source: Spark asks it which epoch comes next and who takes part, and runs the tasks.

Spark loads this module in four kinds of process: the driver, the process that keeps the reader,
planners, and the workers in which tasks run. A Spark offset is the number of an epoch and nothing
else: positions are the conductor's business and live in the target cluster. So whatever Spark
remembers, forgets or repeats, no record is lost or doubled by it.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.messages import ControlMessage, EpochAssignment, RequestEpoch
from sparkmirror.engine.control_endpoint import ControlEndpoint
from sparkmirror.engine.spark.receipt_rows import RECEIPT_SCHEMA, ReceiptRow

RESPONSE_TIMEOUT_S = 30.0
EpochOffset = dict[str, int]


class TaskInputPartition(InputPartition):
    """One task of one epoch, and where it reports for duty."""

    def __init__(
        self, flow: str, connector: str, post: ControlEndpoint, task: int, epoch: int
    ) -> None:
        super().__init__(task)
        self.flow = flow
        self.connector = connector
        self.endpoint = post
        self.task = task
        self.epoch = epoch

    def __repr__(self) -> str:
        """Without the secret: Spark may print it."""
        return f"TaskPartition(flow={self.flow!r}, task={self.task}, epoch={self.epoch})"


class EpochReader(DataSourceStreamReader):
    """Asks the driver for epochs; makes one Spark task of each of its tasks."""

    def __init__(self, flow: str, connector: str, post_file: Path) -> None:
        self._flow = flow
        self._connector = connector
        self._endpoint_file = post_file
        self._connection: ControlConnection | None = None
        self._messages: list[ControlMessage] = []
        self._task_count = 0

    def initialOffset(self) -> EpochOffset:  # noqa: N802 - the name is Spark's
        """Before the first epoch."""
        return {"epoch": 0}

    def latestOffset(self, start: EpochOffset, limit: ReadLimit) -> EpochOffset:  # noqa: N802
        """The epoch to run now; the same again as long as there is none."""
        epoch = self._request_epoch(RequestEpoch(finished_epoch=start["epoch"]))
        self._task_count = epoch.tasks
        return {"epoch": epoch.number}

    def partitions(self, start: EpochOffset, end: EpochOffset) -> Sequence[InputPartition]:
        """One for each task."""
        if start == end:
            return []
        post = ControlEndpoint.read(self._endpoint_file)
        return [
            TaskInputPartition(self._flow, self._connector, post, task, end["epoch"])
            for task in range(self._task_count)
        ]

    def read(self, partition: InputPartition) -> Iterator[ReceiptRow]:
        """Copy until the epoch ends; the rows are receipts of what was copied."""
        # Imported here, because only workers copy: the others would wait for it in vain.
        from sparkmirror.engine.spark.spark_task import run_spark_task

        assert isinstance(partition, TaskInputPartition)
        yield from run_spark_task(partition)

    def _request_epoch(self, question: RequestEpoch) -> EpochAssignment:
        if self._connection is None:
            post = ControlEndpoint.read(self._endpoint_file)
            self._connection = ControlConnection.connect(
                post.address, post.secret, self._messages.append
            )
        self._connection.send(question)
        deadline = time.monotonic() + RESPONSE_TIMEOUT_S
        while not self._messages:
            left_s = max(deadline - time.monotonic(), 0)
            if not select.select([self._connection], [], [], left_s)[0]:
                raise ControlConnectionLost(
                    "driver", f"no answer within {RESPONSE_TIMEOUT_S:.0f} s"
                )
            self._connection.on_readable()
        answer = self._messages.pop()
        assert isinstance(answer, EpochAssignment)
        return answer


class MirrorDataSource(DataSource):
    """`spark.readStream.format("sparkmirror")`; its options are `flow`, `connector` and `post`."""

    @classmethod
    def name(cls) -> str:
        """What it is called in `format`."""
        return "sparkmirror"

    def schema(self) -> str:
        """Of a receipt."""
        return RECEIPT_SCHEMA

    def streamReader(self, schema: StructType) -> EpochReader:  # noqa: N802
        """The side that Spark asks."""
        options = self.options
        return EpochReader(options["flow"], options["connector"], Path(options["post"]))
