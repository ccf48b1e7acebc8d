"""Python functions of a query (UDFs), evaluated by a Spark job on each batch of rows.

    rows ─▶ local relation ─▶ Spark's own operator for Python functions ─▶ rows

The functions run in Python workers of Spark, so a batch takes as long as a small job does. A row on
which a function fails fails the job: then halves of the rows are evaluated, until it is found.
"""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from sparkmirror.engine.spark.query import plan_tree
from sparkmirror.engine.spark.query.jvm_projection import Jvm
from sparkmirror.engine.spark.query.plan_tree import JavaObject
from sparkmirror.engine.spark.query.record_columns import ArrowArray, pa


class PythonEvaluation:
    """An operator of an optimised plan that calls Python functions."""

    def __init__(self, jvm: Jvm, operator: JavaObject, inputs: Sequence[JavaObject]) -> None:
        self._jvm = jvm
        self._operator = operator
        self._inputs = list(inputs)
        self._input = jvm.struct_type(
            [(str(index), attribute.dataType()) for index, attribute in enumerate(inputs)]
        )
        results = plan_tree.items(operator.resultAttrs())
        self._results = operator.resultAttrs()
        self._output = jvm.struct_type(
            [(str(index), attribute.dataType()) for index, attribute in enumerate(results)]
        )

    def evaluate(self, columns: Sequence[ArrowArray]) -> list[ArrowArray]:
        """Return the columns of all functions. Raises what Spark raises for a row that fails."""
        jvm, count = self._jvm, len(columns[0])
        frame = jvm.arrow.toDataFrame(jvm.files.send(columns), self._input.json(), jvm.session)
        rows = jvm.plans.Project(self._named(frame), frame.queryExecution().analyzed())
        evaluated = self._operator.withNewChildren(jvm.seq([rows]))
        plan = jvm.plans.Project(self._results, evaluated)
        executed = jvm.datasets.ofRows(jvm.session, plan).queryExecution().executedPlan()
        return list(jvm.to_arrow(executed.executeToIterator(), self._output, count).columns)

    def try_evaluate(self, columns: Sequence[ArrowArray]) -> tuple[list[ArrowArray], ArrowArray]:
        """Return the columns of the rows that do not fail, and for each row whether it does not."""
        try:
            return self.evaluate(columns), pa.array([True] * len(columns[0]))
        except (Py4JError, PySparkException):
            if len(columns[0]) == 1:
                return [], pa.array([False])
        middle = len(columns[0]) // 2
        first, first_valid = self.try_evaluate([column.slice(0, middle) for column in columns])
        second, second_valid = self.try_evaluate([column.slice(middle) for column in columns])
        valid = pa.concat_arrays([first_valid, second_valid])
        if not first or not second:
            return first or second, valid
        return [pa.concat_arrays(pair) for pair in zip(first, second, strict=True)], valid

    def _named(self, frame: JavaObject) -> JavaObject:
        """The columns of a frame under the ids that the functions of the plan know."""
        jvm = self._jvm
        given = plan_tree.items(frame.queryExecution().analyzed().output())
        return jvm.seq(
            [
                jvm.catalyst.Alias(
                    column, known.name(), known.exprId(), jvm.seq([]), jvm.none, jvm.seq([])
                )
                for column, known in zip(given, self._inputs, strict=True)
            ]
        )
