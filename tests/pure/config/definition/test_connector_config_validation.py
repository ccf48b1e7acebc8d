"""Validation of a connector's config: checks across keys, transformations, patterns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.definition.connector_config_validation import (
    WorkerCapabilities,
    validate_connector_config,
)
from sparkmirror.config.definition.java_classes import (
    CHECKPOINT_CONNECTOR,
    CONNECTORS,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
    TRANSFORMATIONS,
)
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.plugin_module_allowlist import PluginModuleAllowlist
from sparkmirror.errors import ConfigFault

WORKER = WorkerCapabilities()
NEVER_CLOSED = "has a character class never closed at position"


def simple(name: str) -> str:
    return name.removeprefix("org.apache.kafka.connect.")


def config(connector: str, **props: str) -> dict[str, str | None]:
    """A valid config with `props` added; `_` in a key stands for a dot."""
    more = {key.replace("_", "."): value for key, value in props.items()}
    return {"name": "n", "connector.class": connector, "source.cluster.alias": "a", **more}


def errors(
    props: dict[str, str | None], worker: WorkerCapabilities = WORKER
) -> dict[str, list[str]]:
    """The errors by key."""
    found = validate_connector_config(props, worker).configs
    return {each.value.name: list(each.value.errors) for each in found if each.value.errors}


@pytest.mark.parametrize("connector", CONNECTORS, ids=simple)
def test_the_smallest_config_is_valid(connector: str) -> None:
    assert errors(config(connector)) == {}


@pytest.mark.parametrize(
    ("connector", "key"),
    [
        (SOURCE_CONNECTOR, "topics"),
        (SOURCE_CONNECTOR, "topics.exclude"),
        (SOURCE_CONNECTOR, "config.properties.exclude"),
        (CHECKPOINT_CONNECTOR, "groups"),
        (CHECKPOINT_CONNECTOR, "groups.exclude"),
        (CHECKPOINT_CONNECTOR, "topics"),
        (CHECKPOINT_CONNECTOR, "topics.exclude"),
    ],
    ids=simple,
)
def test_a_broken_pattern_is_a_fault_of_its_key(connector: str, key: str) -> None:
    props = config(connector) | {key: "ok.*, [x"}
    found = errors(props)
    assert list(found) == [key]
    (message,) = found[key]
    assert message.startswith(f"Invalid value ok.*,[x for configuration {key}: pattern ")
    assert NEVER_CLOSED in message
    assert "write \\[" in message


def test_a_pattern_that_no_connector_reads_is_not_validated() -> None:
    assert errors(config(HEARTBEAT_CONNECTOR, topics="[")) == {}
    own = config(SOURCE_CONNECTOR, topics="[", topic_filter_class="my:Filter")
    worker = WorkerCapabilities(plugin_modules=PluginModuleAllowlist(frozenset({"my"})))
    assert validate_connector_config(own, worker).errors == ()


def test_patterns_of_a_list_are_joined_before_they_are_compiled() -> None:
    assert errors(config(SOURCE_CONNECTOR, topics="(a,b)")) == {}


@pytest.mark.parametrize(
    ("topics", "advice"),
    [
        ("*", "for any text write .* instead of *"),
        ("a{1,2}", "a comma always starts the next pattern"),
    ],
)
def test_a_common_mistake_in_a_pattern_gets_advice(topics: str, advice: str) -> None:
    assert advice in errors(config(SOURCE_CONNECTOR, topics=topics))["topics"][0]


def test_an_unknown_class_is_a_fault_of_its_key() -> None:
    props = config(SOURCE_CONNECTOR, replication_policy_class="no.Such")
    message = "Invalid value no.Such for configuration replication.policy.class: "
    assert errors(props) == {
        "replication.policy.class": [f"{message}Class no.Such could not be found."]
    }
    assert validate_connector_config(props, WORKER, lambda name: name).errors == ()


def test_a_leading_blank_in_a_class_name_is_ignored() -> None:
    converter = " org.apache.kafka.connect.converters.ByteArrayConverter"
    assert errors(config(SOURCE_CONNECTOR, key_converter=converter)) == {}


@pytest.mark.parametrize("name", TRANSFORMATIONS, ids=simple)
def test_every_transformation_adds_its_keys_and_its_predicate_keys(name: str) -> None:
    props = config(SOURCE_CONNECTOR, transforms="x", transforms_x_type=name)
    found = validate_connector_config(props, WORKER)
    keys = [each.value.name for each in found.configs]
    own = [key.removeprefix("transforms.x.") for key in keys if key.startswith("transforms.x.")]
    assert own[:2] == ["type", "plugin.version"]
    assert own[-2:] == ["negate", "predicate"]
    assert "Transforms: x" in found.groups


def test_a_class_of_another_type_is_not_accepted_as_a_transformation() -> None:
    predicate = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"
    found = errors(config(SOURCE_CONNECTOR, transforms="x", transforms_x_type=predicate))
    assert found["transforms.x.type"] == [
        f"Class class {predicate} does not implement the Transformation interface"
    ]


def test_a_custom_transformation_is_accepted_through_the_resolver() -> None:
    props = config(SOURCE_CONNECTOR, transforms="x", transforms_x_type="my.module:Mine")
    found = validate_connector_config(props, WORKER, lambda name: name)
    assert found.errors == ()
    assert "transforms.x.predicate" in [each.value.name for each in found.configs]


def test_an_undefined_predicate_and_a_negation_without_predicate_are_faults() -> None:
    chain = {"transforms_f_type": "Filter", "transforms_g_type": "Filter"}
    props = config(
        SOURCE_CONNECTOR,
        transforms="f,g",
        transforms_f_predicate="gone",
        transforms_g_negate="true",
        **chain,
    )
    assert errors(props) == {
        "transforms.f.predicate": ["Predicate 'gone' is not defined; add it to predicates."],
        "transforms.g.type": [
            (
                "Config 'transforms.g.negate' was provided but there is no config "
                "'transforms.g.predicate' defining a predicate to be negated."
            )
        ],
    }


def test_aliases_may_add_the_same_key() -> None:
    props = config(
        SOURCE_CONNECTOR,
        transforms="t,t.target",
        transforms_t_type="TimestampConverter$Key",
        transforms_t_target_type="Filter",
    )
    assert errors(props) == {}


FORMAT = "sparkmirror.transform.value.format"


def test_our_own_keys_are_in_the_answer_only_with_a_fault() -> None:
    valid = {**config(SOURCE_CONNECTOR), FORMAT: "json", "sparkmirror.on.loss": "skip"}
    found = validate_connector_config(valid, WORKER)
    assert not [one for one in found.configs if one.value.name.startswith("sparkmirror.")]
    assert errors(valid | {FORMAT: "avro", "sparkmirror.on.loss": "x"}) == {
        "sparkmirror.on.loss": [
            (
                "Invalid value x for configuration sparkmirror.on.loss: String must be one of: "
                "halt, skip, restart"
            )
        ],
        FORMAT: [
            (
                f"Invalid value avro for configuration {FORMAT}: String must be one of: bytes, "
                "json, json-with-schema, string"
            )
        ],
    }


def test_connectors_that_copy_nothing_do_not_read_our_own_keys() -> None:
    assert errors({**config(CHECKPOINT_CONNECTOR), FORMAT: "avro"}) == {}


def test_transformations_that_a_worker_cannot_run_are_faults_of_source_connectors() -> None:
    worker = WorkerCapabilities(
        transformation_faults=lambda _: [ConfigFault("transforms.x.type", "cannot be run")]
    )
    own = {"transforms": "x", "transforms_x_type": "Filter"}
    found = errors(config(SOURCE_CONNECTOR, **own), worker)
    assert found == {"transforms.x.type": ["cannot be run"]}
    assert errors(config(CHECKPOINT_CONNECTOR, **own), worker) == {}


def test_a_version_of_a_transformation_must_exist() -> None:
    props = config(
        SOURCE_CONNECTOR,
        transforms="f",
        transforms_f_type="Filter",
        transforms_f_plugin_version="9",
    )
    assert "version range [9,9]" in errors(props)["transforms.f.plugin.version"][0]


def test_an_unknown_override_policy_allows_no_override() -> None:
    worker = WorkerCapabilities(override_policy="my.Policy")
    props = config(SOURCE_CONNECTOR, producer_override_acks="1")
    assert list(errors(props, worker)) == ["producer.override.acks"]
    assert errors(props) == {}


KEYS = st.sampled_from(
    [*sorted(ALL_CONNECTOR_NAMES), "transforms.x.type", "predicates.p.type", "unknown", ""]
)
TEXTS = st.none() | st.text(max_size=6) | st.sampled_from(["x", "p", "Filter", "false", "required"])


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(CONNECTORS),
    st.dictionaries(KEYS, TEXTS, max_size=6),
)
def test_validation_of_any_config_names_each_key_once(
    connector: str, props: dict[str, str | None]
) -> None:
    found = validate_connector_config(props | {"connector.class": connector}, WORKER)
    names = [each.value.name for each in found.configs]
    assert len(names) == len(set(names))
    assert all(each.key is None or each.key.name == each.value.name for each in found.configs)
