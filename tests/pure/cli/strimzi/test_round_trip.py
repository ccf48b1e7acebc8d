"""A file that was exported and imported again configures workers and connectors as before."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.cli.strimzi.properties_to_resource.resource_export import ResourceExport
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_resources import import_resources
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.secrets.jaas import LOGIN_MODULES
from sparkmirror.lab.properties_file import format_properties
from sparkmirror.model import SourceAndTarget

DIRECTORY = "/etc/secrets"
ALIASES = ("a", "B", "c_d")
FLOWS = tuple(
    SourceAndTarget(source, target) for source in ALIASES for target in ALIASES if source != target
)
PROVIDERS = {
    "config.providers": "dir,env",
    "config.providers.dir.class": "DirectoryConfigProvider",
    "config.providers.env.class": "EnvVarConfigProvider",
}
VALUES = st.sampled_from(("7", "some text", "${env:VALUE}", f"${{dir:{DIRECTORY}/values:one}}"))


def password_login(mechanism: str) -> dict[str, str]:
    options = f'username="m" password="${{dir:{DIRECTORY}/login:password}}"'
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{LOGIN_MODULES[mechanism]} required {options};",
    }


STORE = {"ssl.truststore.type": "PEM", "ssl.truststore.location": f"{DIRECTORY}/ca/ca.crt"}
CERTIFICATE = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.certificate.chain": f"${{dir:{DIRECTORY}/user:user.crt}}",
    "ssl.keystore.key": f"${{dir:{DIRECTORY}/user:user.key}}",
}
TOKENS = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.jaas.config": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        f'clientId="m" clientSecret="${{dir:{DIRECTORY}/sso:secret}}";'
    ),
    "sasl.oauthbearer.token.endpoint.url": "https://sso/token",
}
SECURITY: tuple[dict[str, str], ...] = (
    {},
    {"security.protocol": "SSL"},
    {"security.protocol": "SSL", **STORE},
    {"security.protocol": "SSL", **STORE, **CERTIFICATE},
    {"security.protocol": "SASL_PLAINTEXT", **password_login("PLAIN")},
    {"security.protocol": "SASL_SSL", **STORE, **password_login("SCRAM-SHA-512")},
    {"security.protocol": "SASL_SSL", **TOKENS},
    {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": (
            f"${{dir:{DIRECTORY}/ca:one.crt}}\n${{dir:{DIRECTORY}/ca:two.crt}}"
        ),
        **password_login("SCRAM-SHA-256"),
        "sasl.login.retry.backoff.ms": "50",
    },
)
CLUSTERS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        (
            *("ssl.protocol", "producer.linger.ms", "producer.max.request.size"),
            *("consumer.fetch.max.bytes", "admin.retries", "offset.storage.replication.factor"),
            *("offset.flush.interval.ms", "metadata.max.age.ms"),
        ),
        VALUES,
    ),
)
SWITCH_KEYS = {"emit.heartbeats.enabled", "emit.checkpoints.enabled"}
"""They say which parts a flow has; `parts_of` compares them."""
SWITCHES = st.sampled_from(("true", "false"))
CONNECTORS = {
    "topics": st.sampled_from(("orders", "a,b", ".*")),
    "groups.exclude": st.just("test-.*"),
    "tasks.max": st.integers(1, 9).map(str),
    **dict.fromkeys(("replication.factor", "refresh.topics.interval.seconds"), VALUES),
    **dict.fromkeys(("sync.group.offsets.enabled", "replication.policy.separator"), VALUES),
    "emit.checkpoints.enabled": SWITCHES,
}
OF_FLOW = st.fixed_dictionaries(
    {},
    optional={
        **CONNECTORS,
        **dict.fromkeys(("producer.override.linger.ms", "consumer.max.poll.records"), VALUES),
        **dict.fromkeys(("source.consumer.max.poll.records", "target.admin.retries"), VALUES),
        "source.cluster.bootstrap.servers": st.just("other:9092"),
        "emit.heartbeats.enabled": SWITCHES,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnFile:
    """The parts of a file. The settings of a flow belong to the first one."""

    flows: list[SourceAndTarget]
    security: tuple[dict[str, str], ...]
    clusters: tuple[dict[str, str], ...]
    of_flow: dict[str, str]
    for_all: dict[str, str]

    def properties(self) -> dict[str, str]:
        """Return the file."""
        made = {"clusters": ",".join(ALIASES), **PROVIDERS, **self.for_all}
        for alias, security, other in zip(ALIASES, self.security, self.clusters, strict=True):
            own = {"bootstrap.servers": f"{alias}:9092", **security, **other}
            made |= {f"{alias}.{key}": value for key, value in own.items()}
        made |= {f"{flow}.enabled": "true" for flow in self.flows}
        return made | {f"{self.flows[0]}.{key}": value for key, value in self.of_flow.items()}


FILES = st.builds(
    DrawnFile,
    flows=st.lists(st.sampled_from(FLOWS), min_size=1, max_size=4, unique=True),
    security=st.tuples(*(st.sampled_from(SECURITY) for _ in ALIASES)),
    clusters=st.tuples(*(CLUSTERS for _ in ALIASES)),
    of_flow=OF_FLOW,
    for_all=st.fixed_dictionaries(
        {"emit.heartbeats.enabled": SWITCHES},
        optional={**CONNECTORS, "offset.storage.partitions": VALUES},
    ),
)


def opened(properties: dict[str, str]) -> MirrorMakerConfig:
    text = format_properties(properties).encode()
    return MirrorMakerConfig.open(parse_properties(text, file="mm2.properties"), {}).lenient()


def effective(
    config: MirrorMakerConfig, flow: SourceAndTarget, parts: list[FlowPart]
) -> dict[str, dict[str, str]]:
    """Return what each part of a flow reads of its config."""
    found = {}
    for part in parts:
        connector = part.connector
        layers = (
            config.layered_worker_config(flow)
            if connector is None
            else config.layered_connector_config(flow, connector)
        )
        found[part.value] = {
            key: value
            for key, value in layers.props.items()
            if part.reads(key) and key not in SWITCH_KEYS and not key.startswith("config.providers")
        }
    return found


def parts_of(config: MirrorMakerConfig, flow: SourceAndTarget, version: str) -> list[FlowPart]:
    """Return the worker, and the connectors of a flow that a resource can have."""
    parts = [FlowPart.WORKER, FlowPart.SOURCE]
    for part, key in (
        (FlowPart.CHECKPOINT, "emit.checkpoints.enabled"),
        (FlowPart.HEARTBEAT, "emit.heartbeats.enabled"),
    ):
        connector = part.connector
        assert connector is not None
        is_on = config.layered_connector_config(flow, connector).props.get(key, "true") == "true"
        if is_on and not (part is FlowPart.HEARTBEAT and version == "v1"):
            parts.append(part)
    return parts


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
@settings(max_examples=20)
@given(drawn=FILES)
def test_configs_are_the_same_after_export_and_import(version: str, drawn: DrawnFile) -> None:
    before = opened(drawn.properties())
    export = ResourceExport(before, name="m", version=version, secrets_directory=DIRECTORY)
    imported = import_resources(export.resources(), SecretFiles(directory=DIRECTORY), "m.yaml")
    after = opened(imported.properties)
    for flow in drawn.flows:
        parts = parts_of(before, flow, version)
        assert parts == parts_of(after, flow, version)
        assert effective(after, flow, parts) == effective(before, flow, parts)
    enabled = {flow for flow in FLOWS if f"{flow}.enabled" in imported.properties}
    assert enabled == {*drawn.flows}
