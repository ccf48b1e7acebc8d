"""No output of `sparkmirror config` contains a value of a config provider."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkmirror.cli.config.command import config
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.files.mirror_maker_config import FLOW_SWITCHES
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.tables.client.common_client_configs import MIRROR_CLIENT
from sparkmirror.config.tables.dedicated import DEDICATED
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.plugins.converters import CONVERTER_TABLES
from sparkmirror.config.tables.plugins.transforms import PREDICATE_TABLES, TRANSFORMATION_TABLES

SECRET = "SEKRET"
PROVIDER = """config.providers=e
config.providers.e.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""
FLOWS = f"""clusters=A,B
A.bootstrap.servers=a:1
B.bootstrap.servers=b:1
A->B.enabled=true
emit.heartbeats.enabled=false
{PROVIDER}"""
WORKER = f"""bootstrap.servers=b:1
group.id=g
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=c
offset.storage.topic=o
status.storage.topic=s
{PROVIDER}"""
SEPARATE_KEYS = (
    "clusters",
    "config.providers",
    "connector.class",
    "connector.plugin.version",
    "transforms",
    "predicates",
)
"""A fault of one of these keys hides faults of other keys, so each key has its own file."""
FORMS = {"once": "${e:S}", "twice": "${e:S},${e:S}"}
COMMANDS = [("validate", "text"), ("validate", "json"), ("explain", "json"), ("flows", "text")]
"""Tables contain what the JSON contains, and they are slow to draw: one of each is enough."""
CLASSES = {"transforms": TRANSFORMATION_TABLES, "predicates": PREDICATE_TABLES}


def prefixed(prefix: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        f"{prefix}{name}" for name in names if name not in {*SEPARATE_KEYS, *FLOW_SWITCHES}
    )


def chain(name: str, values: str) -> tuple[str, str]:
    """The lines that use every class of a chain, and those that set all keys of the classes."""
    given = [f"A->B.{name}={','.join(f't{n}' for n in range(len(CLASSES[name])))}"]
    keys: list[str] = []
    for number, (class_name, table) in enumerate(CLASSES[name].items()):
        given.append(f"A->B.{name}.t{number}.type={class_name}")
        keys += prefixed(f"A->B.{name}.t{number}.", [*table.names, "predicate", "negate"])
    return "\n".join(given), "\n".join(f"{key}={values}" for key in keys)


KEYS = {
    "top level": prefixed("", {*DEDICATED.names, *ALL_CONNECTOR_NAMES}),
    "cluster": prefixed("B.", {*MIRROR_CLIENT.names, *DISTRIBUTED.names}),
    "producer": prefixed("A.producer.", MIRROR_CLIENT.names),
    "flow": prefixed("A->B.", {name for part in FlowPart for name in part.config_def.names}),
    "side": prefixed("A->B.source.cluster.", MIRROR_CLIENT.names),
    "types": ("A->B.transforms.t.type", "A->B.transforms.t.plugin.version"),
    "override": ("A->B.producer.override.acks", "B.key.converter", "A->B.topic.creation.g.include"),
    "unknown": ("foo", "A.foo", "A->B.foo", "B->Q.foo", "A.sasl.jaas.confg"),
    **{name: (f"A->B.{name}",) for name in SEPARATE_KEYS[1:]},
    "clusters": ("clusters",),
    "switches": tuple(sorted(FLOW_SWITCHES)),
    "shared": ("status.storage.topic", "config.storage.topic", "B.group.id"),
    "top transforms": ("transforms",),
}
MORE = {
    "types": "A->B.transforms=t\n",
    "shared": "clusters=A,B,C\nC.bootstrap.servers=c:1\nC->B.enabled=true\n",
    "producer": "A.security.protocol=SASL_SSL\n",
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S", SECRET)


def all_output(path: Path, text: str, caplog: pytest.LogCaptureFixture) -> str:
    """The output, errors and log lines of all commands for a file."""
    path.write_text(text)
    output = []
    for command, form in COMMANDS:
        result = CliRunner().invoke(config, [command, str(path), "--format", form])
        output += [result.output, repr(result.exception), str(result.exception)]
    return "\n".join([*output, caplog.text])


def assert_no_secret(output: str) -> None:
    assert SECRET.lower() not in output.lower()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("keys", KEYS)
def test_no_output_contains_a_provider_value(
    keys: str, form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "".join(f"{key}={FORMS[form]}\n" for key in KEYS[keys])
    text = FLOWS.replace("clusters=A,B\n", "") if keys == "clusters" else FLOWS
    output = all_output(tmp_path / "mm2.properties", text + MORE.get(keys, "") + lines, caplog)
    assert "${e:S}" in output
    assert_no_secret(output)


@pytest.mark.parametrize("name", CLASSES)
def test_no_output_contains_a_provider_value_of_a_transformation(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given, lines = chain(name, FORMS["once"])
    output = all_output(tmp_path / "mm2.properties", f"{FLOWS}{given}\n{lines}\n", caplog)
    assert "${e:S}" in output
    assert_no_secret(output)


@pytest.mark.parametrize("converter", sorted(CONVERTER_TABLES))
def test_no_output_contains_a_provider_value_of_a_converter(
    converter: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "".join(
        f"A->B.value.converter.{name}={FORMS['once']}\n"
        for name in CONVERTER_TABLES[converter].names
    )
    text = f"{FLOWS}A->B.value.converter={converter}\n{lines}"
    assert_no_secret(all_output(tmp_path / "mm2.properties", text, caplog))


@pytest.mark.parametrize("form", FORMS)
def test_no_output_contains_a_provider_value_of_a_worker_file(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "".join(f"{key}={FORMS[form]}\n" for key in prefixed("", DISTRIBUTED.names))
    output = all_output(tmp_path / "connect.properties", WORKER + lines, caplog)
    assert "will not do" in output
    assert_no_secret(output)


@pytest.mark.parametrize(
    "key",
    [
        "ssl.truststore.pasword",
        "ssl.keystore.keyy",
        "sasl.jaas.confg",
        "producer.ssl.key.passwort",
        "consumer.basic.auth.credental",
    ],
)
def test_a_secret_under_a_misspelt_name_is_hidden(
    key: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = all_output(tmp_path / "mm2.properties", f"{FLOWS}A.{key}={SECRET}\n", caplog)
    assert f"A.{key}" in output
    assert_no_secret(output)
