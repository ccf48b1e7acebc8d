"""A query as stages: marks of conditions, and columns that are computed.

    SELECT * EXCEPT (value), mask(CAST(value AS STRING)) AS value FROM records
    WHERE headers['pii'] IS NULL

    stage 1   mark     headers                ─▶ is the row kept
    stage 2   columns  value of kept rows     ─▶ value
    output    key, timestamp, headers: those of the record; value: the first column of stage 2

Spark's optimiser has made the plan; the operators of it follow each other without a branch. Only
columns that an expression reads are converted for Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.engine.spark.query import plan_checks, plan_tree
from sparkmirror.engine.spark.query.jvm_projection import Jvm, JvmProjection
from sparkmirror.engine.spark.query.plan_tree import JavaObject
from sparkmirror.engine.spark.query.python_evaluation import PythonEvaluation
from sparkmirror.errors import ConfigError

INPUT = -1
"""Stands for the record instead of a stage."""


class ColumnSource(NamedTuple):
    """Where a column comes from: the record, or a stage."""

    stage: int
    name: str
    """The column of the record, or the number of the stage's column."""


@dataclass(frozen=True, slots=True)
class QueryStage:
    """Expressions that are evaluated at once. A mark has one: whether the row is kept."""

    projection: JvmProjection | PythonEvaluation
    inputs: tuple[ColumnSource, ...]
    is_mark: bool


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """What is evaluated, one stage after the other, and where the parts of a record are then."""

    stages: tuple[QueryStage, ...]
    output: Mapping[str, ColumnSource]

    @property
    def computes_topic(self) -> bool:
        """Whether records may get another topic."""
        unchanged = ColumnSource(INPUT, plan_checks.TOPIC)
        return self.output.get(plan_checks.TOPIC, unchanged) != unchanged


def compile_query(jvm: Jvm, key: str, plan: JavaObject) -> CompiledQuery:
    """Compile an optimised plan. Raises ConfigError if it is no plan for records."""
    chain = list(plan_tree.operators(plan))
    check_optimised(key, chain)
    compiler = _Compiler(jvm, chain[-1])
    for operator in reversed(chain[:-1]):
        compiler.add(operator)
    columns = [
        (
            str(attribute.name()),
            str(attribute.dataType().simpleString()),
            compiler.source(attribute),
        )
        for attribute in plan_tree.items(plan.output())
    ]
    plan_checks.check_output(
        key,
        ((name, kind, one.name if one.stage == INPUT else "") for name, kind, one in columns),
    )
    return CompiledQuery(tuple(compiler.stages), {name: one for name, _, one in columns})


def check_optimised(key: str, chain: Sequence[JavaObject]) -> None:
    """Raise ConfigError for plans that have no record at their end."""
    names = [plan_tree.class_name(operator) for operator in chain]
    if names[-1] == "LocalRelation":
        raise ConfigError.of(key, f"{key} keeps no record: its condition is never true")
    plan_checks.check_operators(key, names)


@dataclass(slots=True)
class _Compiler:
    """Collects the stages of operators, from the records up."""

    jvm: Jvm
    leaf: JavaObject
    stages: list[QueryStage] = field(default_factory=list)
    _sources: dict[int, ColumnSource] = field(default_factory=dict)
    """Where each attribute comes from, by its id."""

    def __post_init__(self) -> None:
        for attribute in plan_tree.items(self.leaf.output()):
            source = ColumnSource(INPUT, str(attribute.name()))
            self._sources[plan_tree.expression_id(attribute)] = source

    def source(self, attribute: JavaObject) -> ColumnSource:
        """Where an attribute comes from."""
        return self._sources[plan_tree.expression_id(attribute)]

    def add(self, operator: JavaObject) -> None:
        """Add the stage of an operator, if it computes anything."""
        if plan_tree.class_name(operator) == plan_checks.FILTER:
            self._add_stage([operator.condition()], is_mark=True)
        elif plan_tree.class_name(operator) == plan_checks.PROJECT:
            self._add_columns(plan_tree.items(operator.projectList()))
        elif plan_tree.class_name(operator) in plan_checks.PYTHON_OPERATORS:
            self._add_python(operator)

    def _add_columns(self, named: Sequence[JavaObject]) -> None:
        computed: list[JavaObject] = []
        ids: list[int] = []
        for expression in named:
            origin = _renamed_attribute(expression)
            if origin is None:
                computed.append(expression.child())
                ids.append(plan_tree.expression_id(expression))
            else:
                self._sources[plan_tree.expression_id(expression)] = self.source(origin)
        if computed:
            self._add_stage(computed, is_mark=False)
            stage = len(self.stages) - 1
            self._sources |= {
                number: ColumnSource(stage, str(index)) for index, number in enumerate(ids)
            }

    def _add_python(self, operator: JavaObject) -> None:
        attributes = list(_references(plan_tree.items(operator.udfs())))
        if not attributes:
            attributes = plan_tree.items(self.leaf.output())[1:2]
        sources = tuple(self.source(attribute) for attribute in attributes)
        evaluation = PythonEvaluation(self.jvm, operator, attributes)
        self.stages.append(QueryStage(evaluation, sources, is_mark=False))
        for index, attribute in enumerate(plan_tree.items(operator.resultAttrs())):
            number = plan_tree.expression_id(attribute)
            self._sources[number] = ColumnSource(len(self.stages) - 1, str(index))

    def _add_stage(self, expressions: Sequence[JavaObject], *, is_mark: bool) -> None:
        attributes = list(_references(expressions))
        if not attributes:  # rows without a column have no number
            attributes = plan_tree.items(self.leaf.output())[1:2]
        self.stages.append(
            QueryStage(
                JvmProjection(self.jvm, expressions, attributes),
                tuple(self.source(attribute) for attribute in attributes),
                is_mark,
            )
        )


def _renamed_attribute(expression: JavaObject) -> JavaObject | None:
    """The attribute that an expression is, perhaps by another name; None if it is computed."""
    if plan_tree.class_name(expression) == "AttributeReference":
        return expression
    child = expression.child()
    return child if plan_tree.class_name(child) == "AttributeReference" else None


def _references(expressions: Sequence[JavaObject]) -> Iterator[JavaObject]:
    """Yield the attributes that expressions read, each once."""
    seen: set[int] = set()
    for expression in expressions:
        for attribute in plan_tree.items(expression.references().toSeq()):
            number = plan_tree.expression_id(attribute)
            if number not in seen:
                seen.add(number)
                yield attribute
