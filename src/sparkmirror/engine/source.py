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

from sparkmirror.copy.link import Link, LinkLost
from sparkmirror.copy.messages import Epoch, Message, NextEpoch
from sparkmirror.engine.post import Post
from sparkmirror.engine.receipts import SCHEMA, Row

ANSWER_WITHIN_S = 30.0
Offset = dict[str, int]


class TaskPartition(InputPartition):
    """One task of one epoch, and where it reports for duty."""

    def __init__(self, flow: str, connector: str, post: Post, task: int, epoch: int) -> None:
        super().__init__(task)
        self.flow = flow
        self.connector = connector
        self.post = post
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
        self._post_file = post_file
        self._link: Link | None = None
        self._heard: list[Message] = []
        self._tasks = 0

    def initialOffset(self) -> Offset:  # noqa: N802 - the name is Spark's
        """Before the first epoch."""
        return {"epoch": 0}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """The epoch to run now; the same again as long as there is none."""
        epoch = self._ask(NextEpoch(after=start["epoch"]))
        self._tasks = epoch.tasks
        return {"epoch": epoch.number}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One for each task."""
        if start == end:
            return []
        post = Post.read(self._post_file)
        return [
            TaskPartition(self._flow, self._connector, post, task, end["epoch"])
            for task in range(self._tasks)
        ]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """Copy until the epoch ends; the rows are receipts of what was copied."""
        # Imported here, because only workers copy: the others would wait for it in vain.
        from sparkmirror.engine.attempt import attempt

        assert isinstance(partition, TaskPartition)
        yield from attempt(partition)

    def _ask(self, question: NextEpoch) -> Epoch:
        if self._link is None:
            post = Post.read(self._post_file)
            self._link = Link.connect(post.address, post.secret, self._heard.append)
        self._link.send(question)
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not self._heard:
            left_s = max(deadline - time.monotonic(), 0)
            if not select.select([self._link], [], [], left_s)[0]:
                raise LinkLost("driver", f"no answer within {ANSWER_WITHIN_S:.0f} s")
            self._link.on_readable()
        answer = self._heard.pop()
        assert isinstance(answer, Epoch)
        return answer


class MirrorSource(DataSource):
    """`spark.readStream.format("sparkmirror")`; its options are `flow`, `connector` and `post`."""

    @classmethod
    def name(cls) -> str:
        """What it is called in `format`."""
        return "sparkmirror"

    def schema(self) -> str:
        """Of a receipt."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> EpochReader:  # noqa: N802
        """The side that Spark asks."""
        options = self.options
        return EpochReader(options["flow"], options["connector"], Path(options["post"]))
