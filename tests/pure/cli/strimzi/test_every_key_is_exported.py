"""No key of an mm2.properties is lost by an export: it is in the YAML, or it is listed."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.cli.strimzi.properties_to_resource.resource_export import ResourceExport
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.config.files.deprecated_keys import REMOVED_KEYS, RENAMED_KEYS
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.secrets.jaas import LOGIN_MODULES
from sparkmirror.config.secrets.providers import try_create_providers
from sparkmirror.config.secrets.redaction import is_secret
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS, SOURCE_ADDITIONS
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.lab.properties_file import format_properties

ALIASES = ("a", "B", "b", "c_d")
FLOWS = tuple(f"{source}->{target}" for source in ALIASES for target in ALIASES if source != target)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT")
PROVIDERS = {
    "config.providers": "dir,env,file",
    **{
        f"config.providers.{name}.class": f"org.apache.kafka.common.config.provider.{kind}"
        for name, kind in (
            ("dir", "DirectoryConfigProvider"),
            ("env", "EnvVarConfigProvider"),
            ("file", "FileConfigProvider"),
        )
    },
}
CLIENT_NAMES = tuple(
    f"{client}.{name}"
    for client in ("consumer", "producer", "admin", "producer.override")
    for name in ("linger.ms", "ssl.truststore.location", "sasl.jaas.config", "client.id")
)
CLUSTER_NAMES = (
    *(*CLIENT_SECURITY_NAMES, *CLIENT_SECURITY_NAMES, *CLIENT_NAMES, *DISTRIBUTED.names),
    *("a.key.of.a.plugin", "rest.port", "my.password"),
)
FLOW_NAMES = (
    *(*sorted(ALL_CONNECTOR_NAMES), *CLIENT_NAMES, *SOURCE_ADDITIONS.names, *RENAMED_KEYS),
    *("source.cluster.metadata.max.age.ms", "source.consumer.linger.ms", "a.key.of.a.plugin"),
    *("my.password", "enabled", "emit.heartbeats.interval.seconds"),
)
TOP_NAMES = (*CLUSTER_NAMES, *FLOW_NAMES, *PROCESS_ADDITIONS.names, *REMOVED_KEYS, "spark.x")
WORDS = {
    "security.protocol": PROTOCOLS,
    "sasl.mechanism": ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
    "ssl.truststore.type": ("PEM", "JKS"),
    "ssl.keystore.type": ("PEM", "PKCS12"),
    "enabled": ("true", "false"),
    "emit.checkpoints.enabled": ("true", "false"),
    "emit.heartbeats.enabled": ("true", "false"),
}
"""Keys whose values decide about fields."""
FORMS = (
    "v%d",
    "v%d",
    "v%d ${env:v%d}",
    "${dir:/etc/secrets/v%d:k%d}",
    "${dir:/elsewhere/V%d:k%d}",
    "${file:/opt/v%d.properties:k%d}",
    "${env:v%d}",
    "/etc/secrets/v%d/ca.crt",
)


class WrittenKey(NamedTuple):
    """A key, and the form of its value."""

    key: str
    form: str


def keys(prefix: str, names: tuple[str, ...]) -> st.SearchStrategy[WrittenKey]:
    """Return keys with a prefix, and values that are unlike any other."""
    return st.tuples(st.sampled_from(names), st.integers(0, 7)).map(
        lambda drawn: WrittenKey(f"{prefix}{drawn[0]}", form_of(drawn[0], drawn[1]))
    )


def form_of(name: str, number: int) -> str:
    if name in WORDS:
        return WORDS[name][number % len(WORDS[name])]
    if name == "my.proxy.url":
        return "http://user:pass-v%d@proxy"
    if name == "sasl.jaas.config" and number < 6:
        password = FORMS[number].replace("v%d", "pass-v%d") if number < 2 else FORMS[number]
        module = tuple(LOGIN_MODULES.values())[number % 2]
        return f'{module} required username="user-v%d" password="{password}";'
    return FORMS[number]


FILES = st.lists(
    st.one_of(
        keys("", TOP_NAMES),
        *(keys(f"{alias}.", CLUSTER_NAMES) for alias in ALIASES),
        *(keys(f"{flow}.", FLOW_NAMES) for flow in FLOWS),
    ),
    max_size=25,
)


SECRET_NAMES = (
    *(name for name in CLIENT_SECURITY_NAMES if is_secret(name)),
    *("sasl.jaas.config", "my.password", "producer.my.password", "my.proxy.url"),
    *("security.protocol", "sasl.mechanism", "ssl.keystore.location", "ssl.truststore.location"),
)
FILES_WITH_SECRETS = st.lists(
    st.one_of(*(keys(prefix, SECRET_NAMES) for prefix in ("", "a.", "B.", "a->B."))), max_size=25
)


def file_of(drawn: list[WrittenKey]) -> dict[str, str]:
    """Return a file: the number of a key is part of its value."""
    made = {"clusters": ",".join(ALIASES), "a->B.enabled": "true", **PROVIDERS}
    for number, (key, form) in enumerate(drawn, 100):
        made[key] = form.replace("%d", str(number))
    made["a->B.enabled"] = "true"
    return made


def exported(
    file: dict[str, str], version: str
) -> tuple[list[dict[str, Any]], list[StrimziRemark]]:
    properties = parse_properties(format_properties(file).encode(), file="mm2.properties")
    providers, _ = try_create_providers(properties.mapping, {})
    config = MirrorMakerConfig(properties, providers.lenient())
    export = ResourceExport(config, name="m", version=version, secrets_directory="/etc/secrets")
    return export.resources(), export.remarks


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
@given(drawn=FILES)
def test_every_key_is_in_the_yaml_or_listed(version: str, drawn: list[WrittenKey]) -> None:
    file = file_of(drawn)
    resources, remarks = exported(file, version)
    text = yaml.safe_dump_all(resources).lower()
    listed = {remark.field for remark in remarks}
    lost = [
        key
        for key, value in file.items()
        if key not in listed and not is_expressed(key, value, text)
    ]
    assert lost == []


def is_expressed(key: str, value: str, text: str) -> bool:
    """Whether a value is in the YAML, or is a word that decides about its fields."""
    name = next((name for name in WORDS if key == name or key.endswith(f".{name}")), "")
    if key in PROVIDERS or key == "clusters" or value in WORDS.get(name, ()):
        return True
    number = re.search(r"v\d{3}", value.lower())
    return number is not None and number[0] in text


@given(drawn=FILES_WITH_SECRETS)
def test_no_secret_is_in_the_yaml_or_in_a_remark(drawn: list[WrittenKey]) -> None:
    file = file_of(drawn)
    resources, remarks = exported(file, "v1")
    shown = yaml.safe_dump_all(resources) + str(remarks)
    for number, (key, form) in enumerate(drawn, 100):
        if is_secret(key) and not form.startswith(("${", "/")) and "jaas" not in key:
            assert f"v{number}" not in shown, key
        assert f"pass-v{number}" not in shown, key


def test_words_are_listed_where_they_have_no_effect() -> None:
    file = {
        "clusters": "a,b",
        "a->b.enabled": "true",
        "b->a.enabled": "false",
        "a.ssl.truststore.type": "PEM",
        "b.sasl.mechanism": "PLAIN",
        "a.security.protocol": "PLAIN",
        "a->b.tasks.max": "many",
    }
    _, remarks = exported(file, "v1")
    listed = [remark.field for remark in remarks]
    assert {*file} - {"clusters", "a->b.enabled"} <= {*listed}
