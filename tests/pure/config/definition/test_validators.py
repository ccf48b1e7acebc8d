"""Each validator accepts what Kafka accepts and refuses the rest in Kafka's words."""

from __future__ import annotations

import pytest

from sparkmirror.config.definition.java_classes import (
    CONVERTERS,
    DEFAULT_TOPIC_FILTER,
    PREDICATES,
)
from sparkmirror.config.definition.transform_validators import (
    CastSpec,
    ImplementsInterface,
    NonDuplicateList,
    RenameMappings,
)
from sparkmirror.config.definition.validators import (
    CaseInsensitiveValidString,
    CompositeValidator,
    ConcreteSubClassValidator,
    ListenersValidator,
    NonEmptyListValidator,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    NonNullValidator,
    Range,
    RegexValidator,
    TopicSettingValidator,
    UniqueAliases,
    Validator,
    ValidList,
    ValidString,
)
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.definition.worker_validators import (
    ConnectProtocolValidator,
    MacAlgorithmListValidator,
    MacAlgorithmValidator,
    ResponseHttpHeadersValidator,
)

COLOURS = ("red", "blue")
SIZES = ("BIG", "SMALL")
WIDE = ValidList()
STRICT = ValidList(may_be_empty=False)
FORMATS = ValidList(valid_strings=("legacy", "new"), may_be_empty=False)
CONVERTER = ConcreteSubClassValidator("org.apache.kafka.connect.storage.Converter", CONVERTERS)
PREDICATE = ImplementsInterface(
    "org.apache.kafka.connect.transforms.predicates.Predicate", PREDICATES
)
FACTOR = TopicSettingValidator("Number must be positive", "Positive number")

ACCEPTED: list[tuple[Validator, ParsedValue]] = [
    (Range(1), 1),
    (Range(0.5, 1.0), 1.0),
    (Range(0, may_be_null=True), None),
    (ValidString(COLOURS), "blue"),
    (CaseInsensitiveValidString(SIZES), "small"),
    (WIDE, ()),
    (WIDE, ("a", "b")),
    (ValidList(may_be_null=True), None),
    (FORMATS, ("new", "legacy")),
    (UniqueAliases("aliases"), ("a", "b")),
    (NonNullValidator(), ""),
    (NonEmptyString(), None),
    (NonEmptyListValidator(), ("a",)),
    (RenameMappings(), ("a:b",)),
    (NonDuplicateList(), ("a", "b")),
    (NonDuplicateList(may_be_empty=True), ()),
    (CastSpec(), ("a:int8", "b: STRING")),
    (CastSpec(), ("float64",)),
    (PREDICATE, None),
    (PREDICATE, PREDICATES[0]),
    (PREDICATE, "my.module:Condition"),
    (NonEmptyStringWithoutControlChars(), None),
    (NonEmptyStringWithoutControlChars(), "mm2 ✓ a/b"),
    (RegexValidator(), "a.*"),
    (CompositeValidator((NonEmptyString(), RegexValidator())), "a"),
    (CONVERTER, None),
    (CONVERTER, CONVERTERS[0]),
    (CONVERTER, "my.module:Converter"),
    (FACTOR, -1),
    (FACTOR, 3),
    (ListenersValidator(), ("http://:8083", "https://host:8443")),
    (ResponseHttpHeadersValidator(), ""),
    (
        ResponseHttpHeadersValidator(),
        'set X-Frame-Options:DENY,"add Cache-Control: no-cache, no-store"',
    ),
    (MacAlgorithmValidator("any"), "hmacsha512"),
    (MacAlgorithmListValidator("any"), ("HmacSHA256", "HmacSHA1")),
    (ConnectProtocolValidator(), "Eager"),
]

REFUSED: list[tuple[Validator, ParsedValue, str]] = [
    (Range(1), 0, "Invalid value 0 for configuration k: Value must be at least 1"),
    (Range(0, 900), 901, "Invalid value 901 for configuration k: Value must be no more than 900"),
    (Range(1), None, "Invalid value null for configuration k: Value must be non-null"),
    (
        ValidString(COLOURS),
        "Red",
        "Invalid value Red for configuration k: String must be one of: red, blue",
    ),
    (
        CaseInsensitiveValidString(SIZES),
        "tiny",
        (
            "Invalid value tiny for configuration k: String must be one of (case insensitive): "
            "BIG, SMALL"
        ),
    ),
    (WIDE, None, "Configuration 'k' values must not be null."),
    (WIDE, ("a", ""), "Configuration 'k' values must not be empty."),
    (
        STRICT,
        (),
        "Configuration 'k' must not be empty. Valid values include: any non-empty value",
    ),
    (FORMATS, (), "Configuration 'k' must not be empty. Valid values include: [legacy, new]"),
    (
        FORMATS,
        ("new", "old"),
        "Invalid value old for configuration k: String must be one of: legacy, new",
    ),
    (
        UniqueAliases("aliases"),
        ("a", "a"),
        "Invalid value [a, a] for configuration k: Duplicate alias provided.",
    ),
    (
        UniqueAliases("aliases"),
        None,
        "Invalid value null for configuration k: entry must be non null",
    ),
    (NonNullValidator(), None, "Invalid value null for configuration k: entry must be non null"),
    (NonEmptyString(), "", "Invalid value  for configuration k: String must be non-empty"),
    (NonEmptyListValidator(), (), "Invalid value [] for configuration k: Empty list"),
    (
        RenameMappings(),
        ("a:b", "a:"),
        "Invalid value [a:b, a:] for configuration k: Invalid rename mapping: a:",
    ),
    (NonDuplicateList(), None, "Configuration 'k' values must not be null."),
    (NonDuplicateList(), ("", ""), "Configuration 'k' values must not be duplicated."),
    (NonDuplicateList(), ("a", ""), "Configuration 'k' values must not be empty."),
    (
        NonDuplicateList(),
        (),
        "Configuration 'k' must not be empty. Valid values include: any non-empty value",
    ),
    (CastSpec(), None, "Must specify at least one field to cast."),
    (
        CastSpec(),
        ("int8", "int16"),
        (
            "Cast transformations that specify a type to cast the entire value to may only specify "
            "a single cast in their spec"
        ),
    ),
    (
        CastSpec(),
        ("a:map",),
        (
            "Cast transformation does not support casting to MAP; supported types are "
            "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]"
        ),
    ),
    (
        PREDICATE,
        DEFAULT_TOPIC_FILTER,
        f"Class class {DEFAULT_TOPIC_FILTER} does not implement the Predicate interface",
    ),
    (
        NonEmptyStringWithoutControlChars(),
        "",
        "Invalid value  for configuration k: String may not be empty",
    ),
    (
        NonEmptyStringWithoutControlChars(),
        "a\u0001\u0085",
        (
            "Invalid value a\u0001\u0085 for configuration k: String may not contain control "
            "sequences but had the following ASCII chars: 1, 133"
        ),
    ),
    (
        RegexValidator(),
        "(",
        (
            "Invalid value ( for configuration k: Invalid regex: pattern '(' has a group never "
            "closed at position 0; add ) or write \\("
        ),
    ),
    (
        CompositeValidator((NonEmptyString(), RegexValidator())),
        "",
        "Invalid value  for configuration k: String must be non-empty",
    ),
    (
        CONVERTER,
        DEFAULT_TOPIC_FILTER,
        f"Invalid value {DEFAULT_TOPIC_FILTER} for configuration k: Not a Converter",
    ),
    (
        FACTOR,
        0,
        (
            "Invalid value 0 for configuration k: Number must be positive, or -1 to use the "
            "broker's default"
        ),
    ),
    (
        ListenersValidator(),
        (),
        (
            "Invalid value for k, at least one URL is expected, ex: "
            "http://localhost:8080,https://localhost:8443."
        ),
    ),
    (ListenersValidator(), ("http://:1", ""), "Empty URL found when parsing k list."),
    (
        ResponseHttpHeadersValidator(),
        "set",
        "Invalid format of header config 'set'. Expected: '[action] [header name]:[header value]'",
    ),
    (
        ResponseHttpHeadersValidator(),
        "put a:b",
        "Invalid header config action: 'put'. Expected one of [set, add, setDate, addDate]",
    ),
    (
        ResponseHttpHeadersValidator(),
        "set a:b, add c",
        (
            "Invalid format of header name and header value pair 'c'. "
            "Expected: '[header name]:[header value]'"
        ),
    ),
    (
        ResponseHttpHeadersValidator(),
        "set a b:c",
        "Invalid header name 'a b'. The '[header name]' cannot contain whitespace",
    ),
    (
        ConnectProtocolValidator(),
        "lazy",
        "Invalid value lazy for configuration k: Invalid Connect protocol compatibility",
    ),
    (
        MacAlgorithmListValidator("any"),
        (),
        "Invalid value [] for configuration k: At least one MAC algorithm must be named",
    ),
]


def kind(validator: Validator) -> str:
    return type(validator).__name__


@pytest.mark.parametrize(("validator", "value"), ACCEPTED, ids=[kind(v) for v, _ in ACCEPTED])
def test_a_value_is_accepted(validator: Validator, value: ParsedValue) -> None:
    assert validator.validation_error("k", value) is None


@pytest.mark.parametrize(
    ("validator", "value", "message"), REFUSED, ids=[kind(v) for v, _, _ in REFUSED]
)
def test_a_value_is_refused_in_kafkas_words(
    validator: Validator, value: ParsedValue, message: str
) -> None:
    assert validator.validation_error("k", value) == message


def test_an_unknown_algorithm_is_refused_with_the_known_ones() -> None:
    fault = MacAlgorithmListValidator("any").validation_error("k", ("HmacSHA256", "Rot13"))
    assert fault
    assert "'Rot13' is not known; use one of: HmacMD5, " in fault


def test_no_validator_raises_for_any_type_of_value() -> None:
    odd: list[ParsedValue] = [None, "", "x", "a\nb", '"', 0, 1.5, True, (), ("",), ("a", "b")]
    for validator in (validator for validator, _ in ACCEPTED):
        for value in odd:
            fault = validator.validation_error("k", value)
            assert fault is None or len(fault) > 20
