"""A ConfigDef parses and validates, and both find the same faults."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.definition.config_def import (
    HIGH,
    LOW,
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Width,
)
from sparkmirror.config.definition.recommenders import FixedRecommender, VisibleIfSetRecommender
from sparkmirror.config.definition.validators import Range, ValidList, ValidString
from sparkmirror.config.definition.value_types import Type, convert_to_string
from sparkmirror.config.secrets.password import Password
from sparkmirror.config.tables.checkpoint import CHECKPOINT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.source import SOURCE, SOURCE_TASK
from sparkmirror.errors import ConfigError

NAME = ConfigKey("name", Type.STRING, REQUIRED, HIGH, "A name.")
SIZE = ConfigKey("size", Type.INT, 3, LOW, "A size.", validator=Range(1))
KIND = ConfigKey(
    "kind", Type.STRING, "a", LOW, "A kind.", validator=ValidString(("a", "b")), group="G"
)
TAGS = ConfigKey("tags", Type.LIST, (), LOW, "Tags.", validator=ValidList())
KEY_WITH_DEFAULT = ConfigKey("k", Type.STRING, "d", LOW, "A text.")
SECRET = ConfigKey("secret", Type.PASSWORD, None, LOW, "A secret.")
TABLE = ConfigDef(NAME, SIZE, KIND, TAGS, SECRET)

REAL = [SOURCE, SOURCE_TASK, CHECKPOINT, DEDICATED, DISTRIBUTED]


def test_parsing_gives_typed_values_and_defaults() -> None:
    assert TABLE.parse({"name": " n ", "size": "7", "secret": "x", "unknown": "?"}) == {
        "name": "n",
        "size": 7,
        "kind": "a",
        "tags": (),
        "secret": Password("x"),
    }


def test_parsing_names_the_fault_of_every_key_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        TABLE.parse({"size": "x", "kind": "c", "tags": "a,,b"})
    assert [(fault.key, fault.message) for fault in caught.value.faults] == [
        ("name", 'Missing required configuration "name" which has no default value.'),
        ("size", "Invalid value x for configuration size: Not a number of type INT"),
        ("kind", "Invalid value c for configuration kind: String must be one of: a, b"),
        ("tags", "Configuration 'tags' values must not be empty."),
    ]


def test_validating_lists_every_key_in_order_with_its_errors() -> None:
    values = TABLE.validate({"name": "n", "size": "0"})
    assert [value.name for value in values] == ["name", "size", "kind", "tags", "secret"]
    assert values[1] == ConfigValue(
        name="size",
        value=0,
        errors=("Invalid value 0 for configuration size: Value must be at least 1",),
    )


def test_a_value_that_cannot_be_parsed_is_validated_as_null_too() -> None:
    (value,) = ConfigDef(SIZE).validate({"size": "x"})
    assert value.value is None
    assert value.errors == (
        "Invalid value x for configuration size: Not a number of type INT",
        "Invalid value null for configuration size: Value must be non-null",
    )


def test_null_is_a_value_but_not_for_a_key_that_is_required() -> None:
    assert ConfigDef(KEY_WITH_DEFAULT).parse({"k": None}) == {"k": None}
    with pytest.raises(ConfigError, match='Missing required configuration "name"'):
        ConfigDef(NAME).parse({"name": None})


def test_a_repeated_list_item_is_read_once_and_its_key_is_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert ConfigDef(TAGS).parse({"tags": "b, a ,b"}) == {"tags": ("b", "a")}
    assert ConfigDef(TAGS).keys_with_repeated_items({"tags": "b, a ,b"}) == ("tags",)
    assert ConfigDef(TAGS).keys_with_repeated_items({"tags": "b,a"}) == ()
    assert not caplog.records
    assert ConfigDef(TAGS).validate({"tags": "b,a,b"})[0].errors == ()


def test_a_class_is_checked_by_the_resolver_that_is_passed_in() -> None:
    table = ConfigDef(ConfigKey("c", Type.CLASS, None, LOW, "A class."))
    assert table.parse({"c": " mine "}, lambda name: f"my.{name}") == {"c": "my.mine"}
    with pytest.raises(ConfigError, match="Class mine could not be found"):
        table.parse({"c": "mine"})


def test_recommendations_depend_on_the_other_values() -> None:
    table = ConfigDef(
        ConfigKey("a", Type.STRING, None, LOW, "A.", recommender=FixedRecommender(("x", "y"))),
        ConfigKey("b", Type.STRING, None, LOW, "B.", recommender=VisibleIfSetRecommender("a")),
    )
    a, b = table.validate({})
    assert (a.recommended_values, a.visible) == (("x", "y"), True)
    assert not b.visible
    assert table.validate({"a": "x"})[1].visible


def test_tables_can_be_joined_and_a_key_can_be_replaced() -> None:
    other = ConfigKey("size", Type.LONG, 5, LOW, "Another size.", width=Width.LONG)
    assert (ConfigDef(NAME) + ConfigDef(SIZE)).names == ("name", "size")
    laid_over = TABLE.updated(ConfigDef(other))
    assert laid_over.names == TABLE.names
    assert laid_over["size"] is other
    assert laid_over.groups == ("G",)
    with pytest.raises(ValueError, match="twice"):
        ConfigDef(SIZE) + ConfigDef(other)


def test_a_key_with_an_invalid_default_cannot_be_created() -> None:
    with pytest.raises(ValueError, match="Value must be at least 1"):
        ConfigKey("size", Type.INT, 0, LOW, "A size.", validator=Range(1))


TEXTS = (
    st.none()
    | st.text(max_size=8)
    | st.sampled_from(
        [
            "true",
            "1",
            "-1",
            "a,b",
            ",",
            "none",
            "SSL",
            "source",
            "http://:1",
            "[1,2)",
            "set a:b",
            "*",
        ]
    )
)


@st.composite
def configs(draw: st.DrawFn) -> tuple[ConfigDef, dict[str, str | None]]:
    """One of the real tables, and a text for some of its keys."""
    table = draw(st.sampled_from(REAL))
    return table, draw(st.dictionaries(st.sampled_from(table.names), TEXTS, max_size=6))


def first_faults(table: ConfigDef, props: dict[str, str | None]) -> dict[str, str]:
    return {value.name: value.errors[0] for value in table.validate(props) if value.errors}


@settings(max_examples=40, deadline=None)
@given(configs())
def test_validate_never_raises_and_finds_a_fault_exactly_when_parse_raises(
    config: tuple[ConfigDef, dict[str, str | None]],
) -> None:
    table, props = config
    expected = first_faults(table, props)
    try:
        table.parse(props)
        found = {}
    except ConfigError as error:
        found = {fault.key: fault.message for fault in error.faults}
    assert found == expected


@settings(max_examples=40, deadline=None)
@given(configs())
def test_a_config_written_from_its_values_parses_to_the_same_values(
    config: tuple[ConfigDef, dict[str, str | None]],
) -> None:
    table, props = config
    faulty = first_faults(table, props)
    sound = ConfigDef(
        *(key for key in table if key.name not in faulty and key.type is not Type.PASSWORD)
    )
    values = sound.parse(props)
    assert sound.parse({name: convert_to_string(value) for name, value in values.items()}) == values


@pytest.mark.parametrize("table", REAL, ids=["source", "task", "checkpoint", "dedicated", "worker"])
def test_every_default_is_a_value_of_its_type(table: ConfigDef) -> None:
    optional = ConfigDef(*(key for key in table if not key.required))
    props = {key.name: key.default_text for key in optional}
    assert optional.parse(props) == optional.parse({})
