"""The REST answers about configuration are those of a recorded Connect worker.

Not decided here, because it needs more than this package:

- `validate-null`, `validate-malformed`, `validate-text` (02): bodies that never become a config.
- `validate-override` (02): the type of `linger.ms` is known to the producer's table, which a
  worker's producer brings.
- `provider-validate-missing-file` (07): the file cannot be read, so nothing is validated.
- That BadRequest from validating is a 500 with the Java class in front, and a 400 otherwise.
"""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config.definition.connector_config_validation import (
    WorkerCapabilities,
    validate_connector_config,
)
from sparkmirror.config.definition.plugins import PLUGINS
from sparkmirror.config.definition.rest_answers import (
    connector_plugin_config,
    invalid_config_message,
    validate_config_answer,
)
from sparkmirror.errors import BadRequest, NotFound
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges

RECORDED = [*recorded_exchanges("01-empty-worker"), *recorded_exchanges("02-plugin-config")]
VALIDATED = [
    each for each in recorded_exchanges("02-plugin-config") if each.path.endswith("/validate")
]
EXACTLY_ONCE = [
    each for each in recorded_exchanges("08-exactly-once-worker") if "/validate" in each.path
]
VARIANTS = {each.name: each for each in recorded_exchanges("07-worker-variants")}
UNREADABLE = {"validate-null", "validate-malformed", "validate-text"}
NULL_POINTER = 'Cannot invoke "String.isEmpty()" because "this.pattern" is null'


def short(exchange: RecordedExchange) -> str:
    return f"{exchange.seq}-{exchange.name}"


def masked(answer: Any) -> Any:
    """Hide our descriptions, as the recording hides Apache's."""
    if isinstance(answer, list):
        return [masked(item) for item in answer]
    if isinstance(answer, dict):
        return {k: "*" if k == "documentation" else masked(v) for k, v in answer.items()}
    return answer


def expected(body: Any) -> Any:
    """The recorded body, but for one error text that only a Java programmer can read."""
    if isinstance(body, list):
        return [expected(item) for item in body]
    if isinstance(body, dict):
        return {key: expected(value) for key, value in body.items()}
    return body.replace(NULL_POINTER, "none was given") if isinstance(body, str) else body


def in_any_order(answer: Any) -> Any:
    """The answer with sorted keys: Connect lists keys of converters in the order of a hash map."""
    by_name = sorted(answer["configs"], key=lambda config: str(config["value"]["name"]))
    return {**answer, "groups": sorted(answer["groups"]), "configs": by_name}


@pytest.mark.parametrize("exchange", [each for each in VALIDATED if each.status == 200], ids=short)
def test_validate_answers_as_recorded(exchange: RecordedExchange) -> None:
    answer = masked(validate_config_answer(exchange.plugin, exchange.config, WorkerCapabilities()))
    recorded = expected(exchange.body)
    if exchange.name == "validate-header-converter":
        answer, recorded = in_any_order(answer), in_any_order(recorded)
    assert answer == recorded


@pytest.mark.parametrize("exchange", EXACTLY_ONCE, ids=short)
def test_validate_on_an_exactly_once_worker_answers_as_recorded(exchange: RecordedExchange) -> None:
    worker = WorkerCapabilities(exactly_once=True)
    assert masked(validate_config_answer(exchange.plugin, exchange.config, worker)) == exchange.body


@pytest.mark.parametrize(
    "exchange",
    [
        each
        for each in VALIDATED
        if each.status != 200 and each.name not in {*UNREADABLE, "validate-override"}
    ],
    ids=short,
)
def test_validate_refuses_with_the_recorded_text(exchange: RecordedExchange) -> None:
    with pytest.raises(BadRequest) as caught:
        validate_config_answer(exchange.plugin, exchange.config, WorkerCapabilities())
    assert exchange.message.rpartition("Exception: ")[2] == str(caught.value)


@pytest.mark.parametrize(
    "exchange",
    [
        each
        for each in RECORDED
        if each.path.endswith("/config") and each.status == 200 and each.body
    ],
    ids=short,
)
def test_plugin_config_lists_every_key_as_recorded(exchange: RecordedExchange) -> None:
    assert masked(connector_plugin_config(exchange.plugin)) == exchange.body


@pytest.mark.parametrize("name", ["MirrorHeartbeatConnector", "MirrorHeartbeat"])
def test_a_plugin_is_found_by_simple_name_and_alias(name: str) -> None:
    full_name = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"
    assert connector_plugin_config(name) == connector_plugin_config(full_name)


def is_refused_plugin_request(exchange: RecordedExchange) -> bool:
    path = exchange.path.partition("?")[0]
    asks = exchange.method == "GET" and path.startswith("/connector-plugins/")
    return asks and path.endswith("/config") and isinstance(exchange.body, dict)


@pytest.mark.parametrize(
    "exchange", [each for each in RECORDED if is_refused_plugin_request(each)], ids=short
)
def test_an_unknown_plugin_or_version_is_refused_with_the_recorded_text(
    exchange: RecordedExchange,
) -> None:
    query = exchange.path.partition("?")[2]
    name = exchange.plugin.replace("%20", " ")
    with pytest.raises((NotFound, BadRequest)) as caught:
        connector_plugin_config(name, query.removeprefix("version=") if query else None)
    assert str(caught.value) == exchange.message


@pytest.mark.parametrize("version", ["4.3.0", "4.3", "latest", "[4.0,5.0)", "[1,2],[4.3,)"])
def test_a_requirement_that_the_only_version_meets_is_answered(version: str) -> None:
    assert connector_plugin_config("MirrorHeartbeat", version) == connector_plugin_config(
        "MirrorHeartbeat"
    )


def test_plugins_are_listed_as_recorded() -> None:
    recorded = next(each for each in RECORDED if each.name == "plugins-all").body
    assert [(p.class_name, p.type.value) for p in PLUGINS] == [
        (plugin["class"], plugin["type"]) for plugin in recorded
    ]


def is_refused(exchange: RecordedExchange) -> bool:
    words = "error(s):", "no connector type", "Failed to find any class"
    sent = exchange.method in ("POST", "PUT") and exchange.path.startswith("/connectors")
    return sent and exchange.status == 400 and any(word in str(exchange.body) for word in words)


@pytest.mark.parametrize(
    "exchange",
    [
        each
        for each in [*RECORDED, *recorded_exchanges("03-lifecycle-identity")]
        if is_refused(each)
    ],
    ids=short,
)
def test_create_and_update_refuse_with_the_recorded_text(exchange: RecordedExchange) -> None:
    props = {**exchange.config, "name": exchange.connector}  # the herder puts the name in
    try:
        message = invalid_config_message(validate_connector_config(props, WorkerCapabilities()))
    except BadRequest as error:
        message = str(error)
    assert message == exchange.message


@pytest.mark.parametrize(
    ("recording", "policy"),
    [
        ("override-policy-none", "None"),
        ("override-policy-principal", "Principal"),
        ("override-policy-allowlist", "Allowlist"),
    ],
)
def test_a_forbidden_override_is_refused_with_the_recorded_text(
    recording: str, policy: str
) -> None:
    exchange = VARIANTS[recording]
    allowlist = ("acks", "linger.ms")
    java = f"org.apache.kafka.connect.connector.policy.{policy}ConnectorClientConfigOverridePolicy"
    for name in (policy, java):
        worker = WorkerCapabilities(override_policy=name, override_allowlist=allowlist)
        validation = validate_connector_config({**exchange.config, "name": "ov"}, worker)
        assert invalid_config_message(validation) == exchange.message


def test_a_forbidden_override_is_last_in_the_answer() -> None:
    exchange = VARIANTS["override-policy-none-validate"]
    worker = WorkerCapabilities(override_policy="None")
    answer = masked(validate_config_answer(exchange.plugin, exchange.config, worker))
    *rest, last = exchange.body["configs"]
    assert answer["configs"] == [*rest, {**last, "definition": None}]  # not our table
    assert answer["error_count"] == exchange.body["error_count"]


def test_resolved_variables_are_validated_and_secrets_stay_hidden() -> None:
    exchange = VARIANTS["provider-validate"]
    secrets = {
        "${file:secrets.properties:alias}": "source",
        "${file:secrets.properties:pw}": "s3cret",
    }
    props = {key: secrets.get(value or "", value) for key, value in exchange.config.items()}
    assert (
        masked(validate_config_answer(exchange.plugin, props, WorkerCapabilities()))
        == exchange.body
    )


def test_a_config_without_a_class_is_refused_without_its_secrets() -> None:
    with pytest.raises(BadRequest, match=r"\{sasl.jaas.config=\[hidden\], name=x\}"):
        validate_connector_config({"sasl.jaas.config": "secret", "name": "x"}, WorkerCapabilities())
