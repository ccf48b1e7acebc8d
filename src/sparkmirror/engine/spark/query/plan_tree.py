"""Reads plans and expressions of the JVM over py4j, which has no types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

JavaObject: TypeAlias = Any
"""An object of the JVM."""


def items(sequence: JavaObject) -> list[JavaObject]:
    """The items of a Scala Seq."""
    return [sequence.apply(index) for index in range(sequence.size())]


def class_name(node: JavaObject) -> str:
    """The simple name of the class of a plan or an expression."""
    return str(node.getClass().getSimpleName()).removesuffix("$")


def operators(plan: JavaObject) -> Iterator[JavaObject]:
    """Yield a plan and all plans below it, from the top down."""
    yield plan
    for child in items(plan.children()):
        yield from operators(child)


def expressions(plan: JavaObject) -> Iterator[JavaObject]:
    """Yield all expressions of one operator, each with those below it."""
    for expression in items(plan.expressions()):
        yield from _subtree(expression)


def _subtree(expression: JavaObject) -> Iterator[JavaObject]:
    yield expression
    for child in items(expression.children()):
        yield from _subtree(child)


def is_deterministic(expression: JavaObject) -> bool:
    """Whether an expression is deterministic by itself, whatever those below it are."""
    if expression.deterministic():
        return True
    return not all(child.deterministic() for child in items(expression.children()))


def expression_id(attribute: JavaObject) -> int:
    """The id of an attribute, unique in its application."""
    return int(attribute.exprId().id())
