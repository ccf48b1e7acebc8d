"""A KafkaMirrorMaker2 becomes an mm2.properties that starts the same flows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from sparkmirror.cli.strimzi.import_from_strimzi_command import import_group
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import load_properties
from sparkmirror.errors import AlreadyExists, ConfigError, PropertiesError
from tests.support.tutorials.tutorial import TUTORIALS

LOGIN = "spec.clusters[0].authentication"
V1BETA2 = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: my-mirror-maker-2
spec:
  version: 4.0.0
  replicas: 1
  connectCluster: "cluster-b"
  clusters:
    - alias: "cluster-a"
      bootstrapServers: cluster-a-kafka-bootstrap:9093
      tls:
        trustedCertificates:
          - secretName: cluster-a-cluster-ca-cert
            pattern: "*.crt"
      authentication:
        type: tls
        certificateAndKey:
          secretName: mirror-user
          certificate: user.crt
          key: user.key
    - alias: "cluster-b"
      bootstrapServers: cluster-b-kafka-bootstrap:9092
      authentication:
        type: scram-sha-512
        username: mirror
        passwordSecret:
          secretName: mirror-password
          password: password
      config:
        config.storage.replication.factor: -1
  mirrors:
    - sourceCluster: "cluster-a"
      targetCluster: "cluster-b"
      sourceConnector:
        tasksMax: 4
        autoRestart:
          enabled: true
        config:
          replication.factor: -1
          sync.topic.acls.enabled: "false"
          producer.override.linger.ms: 100
      checkpointConnector:
        tasksMax: 1
        config:
          sync.group.offsets.enabled: true
      heartbeatConnector: {}
      topicsPattern: "orders|payments"
      topicsBlacklistPattern: ".*-dead"
      groupsPattern: ".*"
"""
V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: two-sources
spec:
  replicas: 2
  target:
    alias: hub
    bootstrapServers: hub:9092
    groupId: my-group
    configStorageTopic: my-configs
    offsetStorageTopic: my-offsets
    statusStorageTopic: my-status
    tls:
      trustedCertificates: []
  mirrors:
    - source:
        alias: east
        bootstrapServers: east:9092
        authentication:
          type: custom
          sasl: true
          config:
            sasl.mechanism: PLAIN
            sasl.jaas.config: a.Module required password="${strimzisecrets:ns/east-login:pw}";
      sourceConnector:
        tasksMax: 2
    - source:
        alias: west
        bootstrapServers: west:9092
        tls:
          trustedCertificates:
            - {secretName: west-ca, certificate: one.crt}
            - {secretName: west-ca, certificate: two.crt}
      sourceConnector: {}
      checkpointConnector: {}
"""
TUTORIAL_FRAGMENT = (TUTORIALS / "003" / "mirror-maker-descriptor.yaml").read_text("utf-8")
"""As the tutorial prints it: the indentation makes four siblings of what belongs together."""


def imported(directory: Path, text: str, *options: str) -> tuple[dict[str, str], Result]:
    """Run the command. Return what it has written, and its result."""
    file, output = directory / "mirror.yaml", directory / "mm2.properties"
    file.write_text(text, "utf-8")
    arguments = ["strimzi", str(file), "--output", str(output), *options]
    result = CliRunner().invoke(import_group, arguments, catch_exceptions=False)
    return load_properties(output).mapping, result


def faults_of(directory: Path, text: str) -> list[str]:
    """Run the command on a wrong file. Return the lines that it prints."""
    file = directory / "mirror.yaml"
    file.write_text(text, "utf-8")
    output = directory / "never.properties"
    result = CliRunner().invoke(import_group, ["strimzi", str(file), "--output", str(output)])
    assert isinstance(result.exception, ConfigError)
    assert not output.exists()
    return result.stderr.splitlines()


def test_v1beta2_is_written_as_flows(tmp_path: Path) -> None:
    properties, result = imported(tmp_path, V1BETA2)
    assert properties == {
        "clusters": "cluster-a,cluster-b",
        "config.providers": "dir",
        "config.providers.dir.class": (
            "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
        ),
        "cluster-a.bootstrap.servers": "cluster-a-kafka-bootstrap:9093",
        "cluster-a.ssl.truststore.type": "PEM",
        "cluster-a.ssl.truststore.location": "/etc/secrets/cluster-a-cluster-ca-cert/ca.crt",
        "cluster-a.ssl.keystore.type": "PEM",
        "cluster-a.ssl.keystore.certificate.chain": "${dir:/etc/secrets/mirror-user:user.crt}",
        "cluster-a.ssl.keystore.key": "${dir:/etc/secrets/mirror-user:user.key}",
        "cluster-a.security.protocol": "SSL",
        "cluster-b.bootstrap.servers": "cluster-b-kafka-bootstrap:9092",
        "cluster-b.sasl.mechanism": "SCRAM-SHA-512",
        "cluster-b.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="mirror" password="${dir:/etc/secrets/mirror-password:password}";'
        ),
        "cluster-b.security.protocol": "SASL_PLAINTEXT",
        "cluster-b.config.storage.replication.factor": "-1",
        "emit.heartbeats.enabled": "false",
        "cluster-a->cluster-b.enabled": "true",
        "cluster-a->cluster-b.topics": "orders|payments",
        "cluster-a->cluster-b.topics.exclude": ".*-dead",
        "cluster-a->cluster-b.groups": ".*",
        "cluster-a->cluster-b.replication.factor": "-1",
        "cluster-a->cluster-b.sync.topic.acls.enabled": "false",
        "cluster-a->cluster-b.producer.override.linger.ms": "100",
        "cluster-a->cluster-b.tasks.max": "4",
        "cluster-a->cluster-b.sync.group.offsets.enabled": "true",
        "cluster-a->cluster-b.emit.heartbeats.enabled": "true",
    }
    listed = [line.strip().partition(": ")[0] for line in result.stderr.splitlines()]
    assert listed == [
        "Not carried over, or guessed:",
        "spec.clusters[0].tls.trustedCertificates[0].pattern",
        "spec.mirrors[0].sourceConnector.autoRestart",
        "spec.mirrors[0].checkpointConnector.tasksMax",
        "spec.version",
        "These keys of Secrets must be there as files:",
        "/etc/secrets/cluster-a-cluster-ca-cert/ca.crt",
        "/etc/secrets/mirror-user/user.crt",
        "/etc/secrets/mirror-user/user.key",
        "/etc/secrets/mirror-password/password",
    ]


def test_v1_has_a_flow_from_each_source(tmp_path: Path) -> None:
    properties, result = imported(tmp_path, V1, "--secrets", "/run/secrets/")
    assert properties["clusters"] == "hub,east,west"
    assert properties["hub.security.protocol"] == "SSL"
    assert "hub.ssl.truststore.location" not in properties, "the public authorities are trusted"
    assert properties["east.security.protocol"] == "SASL_PLAINTEXT"
    login = 'a.Module required password="${dir:/run/secrets/east-login:pw}";'
    assert properties["east.sasl.jaas.config"] == login
    assert properties["west.ssl.truststore.certificates"] == (
        "${dir:/run/secrets/west-ca:one.crt}\n${dir:/run/secrets/west-ca:two.crt}"
    )
    assert properties["east->hub.emit.checkpoints.enabled"] == "false"
    assert "west->hub.emit.checkpoints.enabled" not in properties
    assert properties["dedicated.mode.enable.internal.rest"] == "true"
    assert "hub.group.id" not in properties
    for field in ("target.groupId", "target.offsetStorageTopic", "replicas"):
        assert f"  spec.{field}: " in result.stderr


@pytest.mark.parametrize("text", [V1BETA2, V1], ids=["v1beta2", "v1"])
def test_connectors_have_what_the_operator_would_give_them(text: str, tmp_path: Path) -> None:
    imported(tmp_path, text)
    config = MirrorMakerConfig.open(load_properties(tmp_path / "mm2.properties"), {})
    resource: dict[str, Any] = yaml.safe_load(text)
    mirrors = resource["spec"]["mirrors"]
    flows = config.require_flows()
    assert len(flows) == len(mirrors), "no flow only for heartbeats"
    for flow, mirror in zip(flows, mirrors, strict=True):
        source = config.layered_connector_config(flow, MirrorConnector.SOURCE).props
        assert source["source.cluster.alias"] == flow.source
        assert source["target.cluster.alias"] == flow.target
        assert source["source.cluster.bootstrap.servers"]
        wanted = mirror["sourceConnector"].get("config", {})
        assert {key: source[key] for key in wanted} == {k: str(v) for k, v in wanted.items()}
        heartbeat = config.layered_connector_config(flow, MirrorConnector.HEARTBEAT).props
        is_emitted = heartbeat["emit.heartbeats.enabled"] == "true"
        assert is_emitted == ("heartbeatConnector" in mirror)


def test_pattern_is_resolved_by_a_secret_of_the_same_stream(tmp_path: Path) -> None:
    secret = (
        "---\nkind: Secret\nmetadata: {name: cluster-a-cluster-ca-cert}\ndata: {own.crt: QQ==}\n"
    )
    properties, result = imported(tmp_path, V1BETA2 + secret)
    location = "/etc/secrets/cluster-a-cluster-ca-cert/own.crt"
    assert properties["cluster-a.ssl.truststore.location"] == location
    assert "trustedCertificates[0].pattern" not in result.stderr
    assert "Secret cluster-a-cluster-ca-cert is not read" in result.stderr


def test_one_of_several_resources_is_chosen_by_name(tmp_path: Path) -> None:
    both = f"{V1BETA2}---\n{V1}"
    assert imported(tmp_path, both)[0]["clusters"] == "cluster-a,cluster-b,hub,east,west"
    chosen, _ = imported(tmp_path, both, "--name", "two-sources", "--force")
    assert chosen["clusters"] == "hub,east,west"


def test_list_as_kubectl_prints_it_is_read_item_by_item(tmp_path: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(V1)]}
    listed["items"][0]["status"] = {"conditions": []}
    properties, result = imported(tmp_path, yaml.safe_dump(listed))
    assert properties["clusters"] == "hub,east,west"
    assert "status" not in result.stderr.replace("statusStorageTopic", "")


def test_oauth_has_the_options_of_strimzis_handler(tmp_path: Path) -> None:
    oauth = """authentication:
        type: oauth
        clientId: mirror
        tokenEndpointUri: https://sso.example.com/token
        clientSecret: {secretName: sso, key: secret}
        disableTlsHostnameVerification: true
"""
    text = (
        V1BETA2[: V1BETA2.index("authentication:")]
        + oauth
        + V1BETA2[V1BETA2.index('    - alias: "cluster-b"') :]
    )
    properties, result = imported(tmp_path, text)
    assert properties["cluster-a.security.protocol"] == "SASL_SSL"
    assert properties["cluster-a.sasl.mechanism"] == "OAUTHBEARER"
    assert properties["cluster-a.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'oauth.client.id="mirror" oauth.token.endpoint.uri="https://sso.example.com/token" '
        'oauth.client.secret="${dir:/etc/secrets/sso:secret}" '
        'oauth.ssl.endpoint.identification.algorithm="";'
    )
    assert "spec.clusters[0].authentication" not in result.stderr


def test_fragment_of_the_tutorial_gets_the_right_places(tmp_path: Path) -> None:
    faults = faults_of(tmp_path, TUTORIAL_FRAGMENT)
    assert [fault.partition(": ")[0] for fault in faults] == [
        "kind",
        "targetCluster",
        "sourceConnector",
        "targetConnector",
        "targetConnector.tls",
        "clusters",
    ]
    assert "apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaMirrorMaker2" in faults[0]
    assert "spec.mirrors[0].targetCluster" in faults[1]
    assert "spec.mirrors[0].sourceConnector" in faults[2]
    assert "no version of Strimzi has this field" in faults[3]
    assert "spec.clusters[].tls" in faults[4]
    assert "spec.target.tls" in faults[4]


def test_fragment_with_the_fields_of_v1_gets_advice_for_v1(tmp_path: Path) -> None:
    fragment = "target: {alias: a}\nmirrors:\n  - source: {alias: b}\n"
    assert "apiVersion: kafka.strimzi.io/v1, kind:" in faults_of(tmp_path, fragment)[0]


def test_clusters_of_the_old_layout_in_version_v1_are_faults(tmp_path: Path) -> None:
    text = V1BETA2.replace("kafka.strimzi.io/v1beta2", "kafka.strimzi.io/v1")
    faults = faults_of(tmp_path, text)
    assert [fault.partition(": ")[0] for fault in faults[:4]] == [
        "spec.clusters",
        "spec.connectCluster",
        "spec.mirrors[0].sourceCluster",
        "spec.mirrors[0].targetCluster",
    ]
    for fault in faults[:4]:
        assert "version v1 has no such field: write apiVersion: kafka.strimzi.io/v1beta2" in fault


def test_other_fields_of_the_old_layout_in_version_v1_are_read_and_listed(tmp_path: Path) -> None:
    old = "      heartbeatConnector: {}\n      topicsBlacklistPattern: x.*\n"
    text = V1.replace(
        "      sourceConnector: {}\n", f"      sourceConnector: {{pause: true}}\n{old}"
    )
    properties, result = imported(tmp_path, text)
    assert properties["west->hub.emit.heartbeats.enabled"] == "true"
    assert properties["west->hub.topics.exclude"] == "x.*"
    for field in ("heartbeatConnector", "topicsBlacklistPattern", "sourceConnector.pause"):
        listed = f"  spec.mirrors[1].{field}: version v1 has no such field"
        assert listed in result.stderr


def test_target_connector_inside_a_resource_gets_the_same_advice(tmp_path: Path) -> None:
    text = V1BETA2 + "      targetConnector: {tls: {trustedCertificates: []}}\n"
    faults = faults_of(tmp_path, text)
    assert [fault.partition(": ")[0] for fault in faults] == [
        "spec.mirrors[0].targetConnector",
        "spec.mirrors[0].targetConnector.tls",
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("sourceCluster: \"cluster-a\"", "sourceCluster: x"), "spec.mirrors[0].sourceCluster"),
        (("type: scram-sha-512", "type: scram"), "spec.clusters[1].authentication.type"),
        (("          key: user.key\n", ""), f"{LOGIN}.certificateAndKey.key"),
        (("Servers: cluster-b-", "Server: cluster-b-"), "spec.clusters[1].bootstrapServers"),
        (("kafka.strimzi.io/v1beta2", "apps/v1"), "apiVersion: must begin with"),
        (("kafka.strimzi.io/v1beta2", "kafka.strimzi.io/v2"), "apiVersion: kafka.strimzi.io/v2"),
        (("kind: KafkaMirrorMaker2", "kind: KafkaConnect"), "there is no resource of kind"),
        (("alias: \"cluster-b\"", "alias: cluster-a"), "spec.clusters[1].alias"),
        (("  mirrors:\n    - ", "  mirrors:\n      "), "spec.mirrors"),
        (("tasksMax: 4", "tasksMax: four"), "spec.mirrors[0].sourceConnector.tasksMax"),
        (("tasksMax: 4", "state: pausd"), "spec.mirrors[0].sourceConnector.state"),
        (("replicas: 1", "replicas: one"), "spec.replicas"),
        (("connectCluster: \"cluster-b\"", "connectCluster: x"), "spec.connectCluster"),
        (("spec:\n", "spec:\nrest:\n"), "spec: is missing or has no fields"),
        (("targetCluster: \"cluster-b\"", "targetCluster: cluster-a"), "spec.mirrors[0]"),
        (("alias: \"cluster-a\"", "alias: cluster a"), "spec.clusters[0].alias"),
        (("  connectCluster:", "  target: {}\n  connectCluster:"), "spec.connectCluster"),
        (("config:\n        config.", "config: [1]\n      x:\n        config."),
         "spec.clusters[1].config: must be a mapping"),
    ],
)  # fmt: skip
def test_fault_names_the_field(change: tuple[str, str], fault: str, tmp_path: Path) -> None:
    assert V1BETA2.replace(*change) != V1BETA2
    assert any(line.startswith(fault) for line in faults_of(tmp_path, V1BETA2.replace(*change)))


def test_wrong_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "mirror.yaml"
    file.write_text("spec:\n  a: [1\n", "utf-8")
    result = CliRunner().invoke(import_group, ["strimzi", str(file), "--output", "-"])
    assert isinstance(result.exception, PropertiesError)
    assert f"{file}, line 3: is not valid YAML" in str(result.exception)


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"kind: a\nspec: {}\nkind: b\n", 3, "the field kind is there twice"),
        (b"spec:\n\tx: 1\n", 2, "found character"),
        (b"spec: \xff\n", None, ""),
    ],
)
def test_yaml_that_kubernetes_refuses_is_named(
    data: bytes, line: int | None, problem: str, tmp_path: Path
) -> None:
    file, output = tmp_path / "mirror.yaml", tmp_path / "mm2.properties"
    file.write_bytes(data)
    result = CliRunner().invoke(import_group, ["strimzi", str(file), "--output", str(output)])
    assert isinstance(result.exception, PropertiesError)
    where = f"{file}, line {line}: " if line else f"{file}: "
    assert f"{where}is not valid YAML: {problem}" in str(result.exception)
    assert not output.exists()


def test_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file, output = tmp_path / "mirror.yaml", tmp_path / "absent" / "mm2.properties"
    file.write_text(V1, "utf-8")
    result = CliRunner().invoke(import_group, ["strimzi", str(file), "--output", str(output)])
    assert isinstance(result.exception, PropertiesError)
    assert f"{output}: cannot be written" in str(result.exception)


def test_state_of_connectors_is_listed_unless_they_run(tmp_path: Path) -> None:
    text = V1BETA2.replace("tasksMax: 4", "state: paused").replace("tasksMax: 1", "pause: true")
    text = text.replace("heartbeatConnector: {}", "heartbeatConnector: {state: running}")
    _, result = imported(tmp_path, text)
    lines = [line for line in result.stderr.splitlines() if "the connector starts" in line]
    assert [line.strip().partition(": ")[0] for line in lines] == [
        "spec.mirrors[0].sourceConnector.state",
        "spec.mirrors[0].checkpointConnector.pause",
    ]


def test_two_way_mirror_of_version_v1_is_one_file(tmp_path: Path) -> None:
    """As a target a cluster has settings of workers, as a source it has none."""

    def one_way(source: str, target: str) -> str:
        config = "{offset.storage.replication.factor: -1}"
        return f"""\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {{name: to-{target}}}
spec:
  replicas: 1
  target: {{alias: {target}, bootstrapServers: "{target}:9092", config: {config}}}
  mirrors:
    - source: {{alias: {source}, bootstrapServers: "{source}:9092"}}
      sourceConnector: {{}}
"""

    properties, _ = imported(tmp_path, f"{one_way('a', 'b')}---\n{one_way('b', 'a')}")
    for alias in ("a", "b"):
        assert properties[f"{alias}.offset.storage.replication.factor"] == "-1"
    assert properties["a->b.enabled"] == properties["b->a.enabled"] == "true"
    other = one_way("b", "a").replace("a:9092", "other:9092")
    (fault,) = faults_of(tmp_path, f"{one_way('a', 'b')}---\n{other}")
    assert "with another bootstrap.servers" in fault


def test_keys_that_strimzi_refuses_in_connectors_are_left_out(tmp_path: Path) -> None:
    text = V1BETA2.replace("replication.factor: -1\n          sync", "name: x\n          sync")
    assert text != V1BETA2
    properties, result = imported(tmp_path, text)
    assert "cluster-a->cluster-b.name" not in properties
    assert "  spec.mirrors[0].sourceConnector.config.name: Strimzi refuses" in result.stderr


def test_providers_of_a_cluster_without_workers_are_listed(tmp_path: Path) -> None:
    text = V1.replace(
        "bootstrapServers: east:9092",
        "bootstrapServers: east:9092\n        config: {config.providers: env}",
    )
    properties, result = imported(tmp_path, text)
    assert "east.config.providers" not in properties
    assert "  spec.mirrors[0].source.config.config.providers: has no effect here" in result.stderr


def test_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    imported(tmp_path, V1)
    arguments = [
        "strimzi",
        str(tmp_path / "mirror.yaml"),
        "--output",
        str(tmp_path / "mm2.properties"),
    ]
    assert isinstance(CliRunner().invoke(import_group, arguments).exception, AlreadyExists)
    assert CliRunner().invoke(import_group, [*arguments, "--force"]).exit_code == 0


def test_output_of_a_dash_is_the_text_alone(tmp_path: Path) -> None:
    properties, _ = imported(tmp_path, V1)
    result = CliRunner().invoke(
        import_group, ["strimzi", str(tmp_path / "mirror.yaml"), "--output", "-"]
    )
    assert len(result.stdout.splitlines()) == len(properties)
    assert result.stdout == (tmp_path / "mm2.properties").read_text("ascii")


def test_group_and_topics_of_strimzis_workers_are_left_out(tmp_path: Path) -> None:
    """Two programs with one group and one config topic would copy everything twice."""
    own = "config.storage.replication.factor: -1"
    keys = ("group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic")
    indent = " " * (V1BETA2.index(own) - V1BETA2.rindex("\n", 0, V1BETA2.index(own)) - 1)
    added = "".join(f"\n{indent}{key}: mirrormaker2-x" for key in keys)
    properties, result = imported(tmp_path, V1BETA2.replace(own, own + added))
    assert properties == imported(tmp_path, V1BETA2, "--force")[0]
    for key in keys:
        assert f"spec.clusters[1].config.{key}: each flow has its own group" in result.stderr


def test_a_secret_of_two_connectors_is_not_printed(tmp_path: Path) -> None:
    text = V1BETA2.replace(
        "producer.override.linger.ms: 100", 'producer.override.sasl.jaas.config: x password="one";'
    )
    config = "sync.group.offsets.enabled"
    assert text != V1BETA2
    line = next(line for line in text.splitlines() if config in line)
    indent = " " * (len(line) - len(line.lstrip()))
    other = f'{line}\n{indent}producer.override.sasl.jaas.config: x password="two";'
    _, result = imported(tmp_path, text.replace(line, other))
    assert "is left out: a flow has one producer.override.sasl.jaas.config" in result.stderr
    assert "one" not in result.stderr.partition("is left out")[0].split()
    assert '"one"' not in result.stderr
    assert '"two"' not in result.stderr
