"""ConfigDef: a table of keys.

One table serves parsing, validation, the answers of the REST API and the manual. The tables
themselves are in `config.tables`.

    text ──parse_type──► value ──validator──► accepted
      │                    │
      └── missing, unreadable, refused: a fault, in Kafka's words, on that key

Invariants, checked when a table is made: no name occurs twice, and every default would pass its
own validator. `validate` never raises, and reports a fault exactly when `parse` raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Final

from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.recommenders import Recommender
from sparkmirror.config.definition.validators import Validator, ValidList
from sparkmirror.config.definition.value_types import (
    ClassResolver,
    ParsedValue,
    Props,
    Type,
    convert_to_string,
    parse_type,
    split_list,
)
from sparkmirror.config.plugin_module_allowlist import is_python_class
from sparkmirror.errors import ConfigError, ConfigFault


class Importance(Enum):
    """The importance of a key, as Kafka's documentation gives it."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


HIGH: Final = Importance.HIGH
MEDIUM: Final = Importance.MEDIUM
LOW: Final = Importance.LOW


class Width(Enum):
    """The width of the key's field in a form."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class Required(Enum):
    """The default of a key that has none."""

    REQUIRED = "REQUIRED"


REQUIRED: Final = Required.REQUIRED


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One row of a table."""

    name: str
    type: Type
    default: ParsedValue | Required
    importance: Importance
    doc: str
    _: KW_ONLY
    validator: Validator | None = None
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    recommender: Recommender | None = None
    dependents: tuple[str, ...] = ()
    accepts_python_class: bool = False
    """Whether a CLASS may be `module:Class` of Python."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "display_name", self.display_name or self.name)
        if self.validator and not isinstance(self.default, Required):
            fault = self.validator.validation_error(self.name, self.default)
            if fault:
                raise ValueError(f"the default of {self.name} is not valid: {fault}")

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return isinstance(self.default, Required)

    @property
    def default_text(self) -> str | None:
        """The default as text; None if there is none, or if it is null."""
        return None if isinstance(self.default, Required) else convert_to_string(self.default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValue:
    """The result of the validation of one key."""

    name: str
    value: ParsedValue = None
    recommended_values: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    visible: bool = True


class ConfigDef:
    """An ordered table of keys. Tables add up: `FRAMEWORK + MIRROR + SOURCE`."""

    __slots__ = ("_by_name",)

    def __init__(self, *keys: ConfigKey) -> None:
        self._by_name = {key.name: key for key in keys}
        if len(self._by_name) < len(keys):
            raise ValueError("a table defines a key twice")

    def __add__(self, other: ConfigDef) -> ConfigDef:
        return ConfigDef(*self, *other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigDef) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self.names)

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> ConfigKey:
        return self._by_name[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of declaration."""
        return tuple(self._by_name)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, in the order in which they first occur."""
        return tuple(dict.fromkeys(key.group for key in self if key.group))

    def updated(self, other: ConfigDef) -> ConfigDef:
        """This table with the rows of another: its rows win, new ones come last."""
        return ConfigDef(*(self._by_name | other._by_name).values())

    def parse(self, props: Props, classes: ClassResolver = resolve_class) -> dict[str, ParsedValue]:
        """The values of all keys. Raises ConfigError with the faults of all keys.

        Ignores keys that are not in the table.
        """
        values: dict[str, ParsedValue] = {}
        faults: list[ConfigFault] = []
        for key in self:
            value, errors = _evaluate(key, props, classes)
            values[key.name] = value
            # A second error only follows from the first: the validator gets no value.
            faults += [ConfigFault(key.name, error) for error in errors[:1]]
        if faults:
            raise ConfigError(faults)
        return values

    def validate(self, props: Props, classes: ClassResolver = resolve_class) -> list[ConfigValue]:
        """The results of all keys, in the order of declaration. Never raises."""
        results = {key.name: _evaluate(key, props, classes) for key in self}
        parsed = {name: value for name, (value, _) in results.items()}
        return [_config_value(self[name], errors, parsed) for name, (_, errors) in results.items()]

    def faults(self, props: Props) -> list[ConfigFault]:
        """The first fault of every key that has one."""
        return [ConfigFault(one.name, one.errors[0]) for one in self.validate(props) if one.errors]

    def keys_with_repeated_items(self, props: Props) -> tuple[str, ...]:
        """The names of the lists that contain an item twice; it is read once."""
        return tuple(key.name for key in self if _has_repeated_items(key, props))


def _has_repeated_items(key: ConfigKey, props: Props) -> bool:
    items = split_list(props.get(key.name) or "")
    return isinstance(key.validator, ValidList) and len(set(items)) < len(items)


def _config_value(
    key: ConfigKey, errors: Iterable[str], parsed: Mapping[str, ParsedValue]
) -> ConfigValue:
    recommender = key.recommender
    return ConfigValue(
        name=key.name,
        value=parsed[key.name],
        recommended_values=recommender.valid_values(parsed) if recommender else (),
        errors=tuple(errors),
        visible=recommender.visible(parsed) if recommender else True,
    )


def _evaluate(
    key: ConfigKey, props: Props, classes: ClassResolver
) -> tuple[ParsedValue, list[str]]:
    """The value and the errors of one key. The validator runs even if the value cannot be parsed.

    Null (from JSON) is a value, except for a required key: for that it counts as missing.
    """
    value: ParsedValue = None
    errors = []
    text = props.get(key.name)
    if text is not None or (key.name in props and not key.required):
        try:
            known = _or_python(classes) if key.accepts_python_class else classes
            value = parse_type(key.name, text, key.type, known)
        except ConfigError as error:
            errors.append(str(error))
    elif isinstance(key.default, Required):
        errors.append(f'Missing required configuration "{key.name}" which has no default value.')
    else:
        value = key.default
    if isinstance(key.validator, ValidList) and isinstance(value, tuple):
        value = tuple(dict.fromkeys(value))
    if key.validator and (fault := key.validator.validation_error(key.name, value)):
        errors.append(fault)
    return value, errors


def _or_python(classes: ClassResolver) -> ClassResolver:
    return lambda name: name if is_python_class(name) else classes(name)
