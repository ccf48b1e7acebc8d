"""The error tree: every class survives pickling, and says whether retrying makes sense."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from sparkmirror import errors
from sparkmirror.errors import (
    ClusterTimeout,
    ClusterUnavailable,
    ConfigError,
    ConfigFault,
    DriverLost,
    MirrorError,
    PropertiesError,
)

CLASSES = [
    cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, MirrorError)
]
SAMPLES: dict[str, Any] = {
    "faults": [ConfigFault("tasks.max", "must be positive")],
    "file": "mm2.properties",
    "line": 3,
    "position": 4,
}


def example(cls: type[MirrorError]) -> MirrorError:
    """Make an instance, with a plausible value for each parameter."""
    parameters = inspect.signature(cls.__init__).parameters.values()
    required = [
        p
        for p in parameters
        if p.name != "self" and p.default is p.empty and p.kind != p.VAR_KEYWORD
    ]
    if any(p.kind == p.VAR_POSITIONAL for p in required):
        return cls("what happened")
    return cls(**{p.name: SAMPLES.get(p.name, f"the {p.name}") for p in required})


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_survives_pickling(cls: type[MirrorError]) -> None:
    error = example(cls)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert str(copy) == str(error)
    assert {k: v for k, v in vars(copy).items() if k != "_made_with"} == {
        k: v for k, v in vars(error).items() if k != "_made_with"
    }


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_stands_in_the_drawing(cls: type[MirrorError]) -> None:
    assert errors.__doc__ is not None
    assert cls.__name__ in errors.__doc__


def test_only_what_may_heal_is_retriable() -> None:
    heals = {ClusterUnavailable, ClusterTimeout, DriverLost}
    assert {cls for cls in CLASSES if cls.retriable} == heals


def test_a_config_error_names_every_fault_and_the_place() -> None:
    error = ConfigError(
        [ConfigFault("a", "a is bad"), ConfigFault("b", "b is worse")], where="mm2.properties"
    )
    assert str(error) == "mm2.properties: a is bad; b is worse"
    assert [fault.key for fault in error.faults] == ["a", "b"]


def test_a_properties_error_names_file_and_line() -> None:
    assert str(PropertiesError("x.properties", 7, "odd")) == "x.properties, line 7: odd"
    assert str(PropertiesError("x.properties", None, "odd")) == "x.properties: odd"
