"""The data source `sparkmirror`: gives Spark epochs as micro-batches and runs their slots.

Spark loads this module in four kinds of process: the driver, the process that holds the reader,
planners, and the workers that run tasks. A Spark offset is an epoch number and nothing else. The
conductor keeps all positions, in the target cluster. So no record is lost or copied twice if Spark
forgets or repeats an offset.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
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


class SlotInputPartition(InputPartition):
    """One slot of one epoch, and the control server that it connects to."""

    def __init__(self, assignment: EpochAssignment, slot: int, endpoint: ControlEndpoint) -> None:
        super().__init__(slot)
        self.endpoint = endpoint
        self.slot = slot
        self.epoch = assignment.number
        self.log_levels = assignment.log_levels

    def __repr__(self) -> str:
        """Without the secret: Spark may print it."""
        return f"SlotInputPartition(slot={self.slot}, epoch={self.epoch})"


class EpochReader(DataSourceStreamReader):
    """Requests epochs from the driver and creates one Spark partition for each slot."""

    def __init__(self, endpoint_file: Path) -> None:
        self._endpoint_file = endpoint_file
        self._connection: ControlConnection | None = None
        self._messages: list[ControlMessage] = []
        self._assignment = EpochAssignment(number=0, slots=0)

    def initialOffset(self) -> EpochOffset:  # noqa: N802 - the name is Spark's
        """Epoch 0: no epoch has run."""
        return {"epoch": 0}

    def latestOffset(self, start: EpochOffset, limit: ReadLimit) -> EpochOffset:  # noqa: N802
        """The epoch to run now; `start` again while there is none. Blocks for the answer."""
        self._assignment = self._request_epoch(RequestEpoch(finished_epoch=start["epoch"]))
        return {"epoch": self._assignment.number}

    def partitions(self, start: EpochOffset, end: EpochOffset) -> Sequence[InputPartition]:
        """One partition for each slot; none if there is no new epoch."""
        if start == end:
            return []
        endpoint = ControlEndpoint.read(self._endpoint_file)
        assignment = replace(self._assignment, number=end["epoch"])
        return [SlotInputPartition(assignment, slot, endpoint) for slot in range(assignment.slots)]

    def read(self, partition: InputPartition) -> Iterator[ReceiptRow]:
        """Copy records to the target until the epoch ends. Yields receipts of what was copied."""
        # Imported here because only workers copy, and the import is slow.
        from sparkmirror.engine.spark.spark_task import run_spark_task

        assert isinstance(partition, SlotInputPartition)
        yield from run_spark_task(partition)

    def _request_epoch(self, request: RequestEpoch) -> EpochAssignment:
        if self._connection is None:
            endpoint = ControlEndpoint.read(self._endpoint_file)
            self._connection = ControlConnection.connect(
                endpoint.address, endpoint.protocol, endpoint.secret, self._messages.append
            )
        self._connection.send(request)
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
    """`spark.readStream.format("sparkmirror")`; option: `endpoint`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "sparkmirror"

    def schema(self) -> str:
        """The columns of a receipt."""
        return RECEIPT_SCHEMA

    def streamReader(self, schema: StructType) -> EpochReader:  # noqa: N802
        """The reader; Spark calls it in a process of its own."""
        return EpochReader(Path(self.options["endpoint"]))
