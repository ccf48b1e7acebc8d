"""Two files by which a thread and the JVM exchange Arrow data: one for each direction.

py4j's own protocol has bytes as base64 text in one line, which costs more than the evaluation. So
only calls go over py4j, and data goes through files in memory. Both sides have them open; their
names are removed at once, so nothing is left behind when a process ends.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sparkmirror.engine.spark.query.plan_tree import JavaObject
from sparkmirror.engine.spark.query.record_columns import ArrowArray, pa

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the names of the files are secret
_LENGTH_BYTES: Final = 4


class ArrowFiles:
    """The files of one thread."""

    def __init__(self, jvm: Any) -> None:
        """Open them on both sides. `jvm` is py4j's view of the JVM."""
        directory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        with (
            tempfile.NamedTemporaryFile(dir=directory, delete=False) as request,
            tempfile.NamedTemporaryFile(dir=directory, delete=False) as answer,
        ):
            self._request = os.fdopen(os.dup(request.fileno()), "r+b", buffering=0)
            self._answer = os.fdopen(os.dup(answer.fileno()), "rb", buffering=0)
            try:
                self._request_channel = jvm.java.io.FileInputStream(request.name).getChannel()
                stream = jvm.java.io.FileOutputStream(answer.name)
            finally:
                for file in (request, answer):
                    Path(file.name).unlink()
        self._answer_channel = stream.getChannel()
        self._output = jvm.java.io.DataOutputStream(stream)
        self._write = jvm.org.apache.spark.api.python.PythonRDD.writeIteratorToStream
        module = getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$")
        self._arrow = getattr(module, "MODULE$")

    def send(self, columns: Sequence[ArrowArray]) -> JavaObject:
        """Write columns; returns an iterator of the JVM over their only batch."""
        names = [str(index) for index in range(len(columns))]
        batch = pa.record_batch(list(columns), names=names)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        data = sink.getvalue()
        self._request.seek(0)
        self._request.truncate()
        written = 0
        while written < data.size:
            written += self._request.write(memoryview(data)[written:])
        self._request_channel.position(0)
        return self._arrow.getBatchesFromStream(self._request_channel)

    def receive(self, batches: JavaObject) -> Any:
        """Return the batch that an iterator of the JVM gives. Raises what the iterator raises."""
        try:
            self._write(batches, self._output)
            self._answer.seek(0)
            data = self._answer.readall()
        finally:
            self._answer_channel.truncate(0)
        size = int.from_bytes(data[:_LENGTH_BYTES], "big")
        with pa.ipc.open_stream(pa.py_buffer(data[_LENGTH_BYTES : _LENGTH_BYTES + size])) as stream:
            return stream.read_next_batch()
