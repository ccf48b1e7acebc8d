"""Expressions of Spark, evaluated in the JVM on batches of rows: Arrow in, Arrow out.

    bytes ─▶ rows ─▶ projection ─▶ rows ─▶ bytes         all but the bytes stays in the JVM

A projection keeps buffers in the JVM: one thread uses it. `TryEval` around all expressions makes
a row that fails null instead, so that one failed row does not hide the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from sparkmirror.engine.spark.query.arrow_files import ArrowFiles
from sparkmirror.engine.spark.query.plan_tree import JavaObject
from sparkmirror.engine.spark.query.record_columns import ArrowArray

UTC: Final = "UTC"
MAX_ANSWER_BYTES: Final = 1 << 30
"""Spark cuts a batch at this size; no batch of rows that fit into memory here is so large."""
_RESULT: Final = "result"


class Jvm:
    """The parts of the JVM that evaluations call, looked up once."""

    def __init__(self, gateway: Any) -> None:
        jvm = gateway.jvm
        spark = jvm.org.apache.spark
        catalyst = spark.sql.catalyst.expressions
        sessions = getattr(getattr(spark.sql.classic, "SparkSession$"), "MODULE$")
        self.session: JavaObject = sessions.getDefaultSession().get()
        self.files = ArrowFiles(jvm)
        self.arrow = getattr(getattr(spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
        self.catalyst = catalyst
        self._literals = getattr(getattr(catalyst, "Literal$"), "MODULE$")
        self.plans = spark.sql.catalyst.plans.logical
        self.datasets = getattr(getattr(spark.sql.classic, "Dataset$"), "MODULE$")
        self.none = getattr(getattr(jvm.scala, "None$"), "MODULE$")
        self._to_seq = spark.api.python.PythonUtils.toSeq
        self._list = jvm.java.util.ArrayList

    def seq(self, values: Sequence[JavaObject]) -> JavaObject:
        """A Scala Seq."""
        collected = self._list()
        for value in values:
            collected.add(value)
        return self._to_seq(collected)

    def projection(
        self, expressions: Sequence[JavaObject], inputs: Sequence[JavaObject]
    ) -> JavaObject:
        """A function of rows with these attributes."""
        return self.catalyst.UnsafeProjection.create(self.seq(expressions), self.seq(inputs))

    def struct_type(self, fields: Sequence[tuple[str, JavaObject]]) -> JavaObject:
        """The type of rows."""
        text = json.dumps(
            {
                "type": "struct",
                "fields": [
                    {
                        "name": name,
                        "type": json.loads(data_type.json()),
                        "nullable": True,
                        "metadata": {},
                    }
                    for name, data_type in fields
                ],
            }
        )
        return self.session.parseDataType(text)

    def to_arrow(self, rows: JavaObject, output: JavaObject, count: int) -> Any:
        """Return rows of the JVM as one Arrow batch. Raises what their evaluation raises."""
        batches = self.arrow.toBatchWithSchemaIterator(
            rows, output, count, MAX_ANSWER_BYTES, UTC, False, False
        )
        try:
            return self.files.receive(batches)
        except Exception:
            batches.close()  # the end of the rows would have closed it
            raise

    def try_all(self, expressions: Sequence[JavaObject]) -> JavaObject:
        """A struct of all expressions; null if one of them fails."""
        named: list[JavaObject] = []
        for index, expression in enumerate(expressions):
            named += [self._literals.apply(str(index)), expression]
        return self.catalyst.TryEval(self.catalyst.CreateNamedStruct(self.seq(named)))


class JvmProjection:
    """Some expressions of a query, and their input columns."""

    def __init__(
        self, jvm: Jvm, expressions: Sequence[JavaObject], inputs: Sequence[JavaObject]
    ) -> None:
        self._jvm = jvm
        self._input = jvm.struct_type(
            [(str(index), attribute.dataType()) for index, attribute in enumerate(inputs)]
        )
        output = [(str(index), one.dataType()) for index, one in enumerate(expressions)]
        self._output = jvm.struct_type(output)
        self._function = jvm.projection(expressions, inputs)
        tried = jvm.try_all(expressions)
        self._tried_output = jvm.struct_type([(_RESULT, tried.dataType())])
        self._tried_function = jvm.projection([tried], inputs)

    def evaluate(self, columns: Sequence[ArrowArray]) -> list[ArrowArray]:
        """Return the columns of all expressions. Raises what Spark raises for a row that fails."""
        result = self._run(columns, self._function, self._output)
        return list(result.columns)

    def try_evaluate(self, columns: Sequence[ArrowArray]) -> tuple[list[ArrowArray], ArrowArray]:
        """Return the columns of the rows that do not fail, and for each row whether it does not."""
        (result,) = self._run(columns, self._tried_function, self._tried_output).columns
        valid = result.is_valid()
        return list(result.filter(valid).flatten()), valid

    def _run(self, columns: Sequence[ArrowArray], function: JavaObject, output: JavaObject) -> Any:
        """Return an Arrow batch with as many rows as the columns have."""
        jvm = self._jvm
        rows = jvm.arrow.fromBatchIterator(
            jvm.files.send(columns), self._input, UTC, False, False, None
        )
        try:
            return jvm.to_arrow(rows.map(function), output, len(columns[0]))
        except Exception:
            rows.size()  # reads what is left: the end of the rows frees their memory
            raise
