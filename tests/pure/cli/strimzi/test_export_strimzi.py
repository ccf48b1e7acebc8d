"""An mm2.properties becomes KafkaMirrorMaker2 resources without secrets, and can be read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from sparkmirror.cli.strimzi.export_to_strimzi_command import export_group
from sparkmirror.cli.strimzi.import_from_strimzi_command import import_group
from sparkmirror.config.files.properties import load_properties
from sparkmirror.errors import ConfigError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
MIRROR = f"""\
clusters=source, target
source.bootstrap.servers=s1:9093,s2:9093
source.security.protocol=SASL_SSL
source.ssl.protocol=TLSv1.2
source.ssl.truststore.location=/home/truststore.jks
source.ssl.truststore.password=st0repass
source.sasl.mechanism=PLAIN
source.sasl.jaas.config={PLAIN} required username="token" password="s3cret";
source.consumer.max.partition.fetch.bytes=2000000
target.bootstrap.servers=kafka1:9092
target.offset.storage.replication.factor=1
tasks.max=3
source->target.enabled=true
source->target.topics=orders
source->target.groups.exclude=test-.*
source->target.sync.group.offsets.enabled=true
source->target.replication.factor=2
target->source.topics=nothing
listeners=http://127.0.0.1:8083
"""
IMPORTED = """\
clusters=a,b,hub
config.providers=dir
config.providers.dir.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider
a.bootstrap.servers=a:9093
a.ssl.truststore.type=PEM
a.ssl.truststore.location=/etc/secrets/a-cluster-ca-cert/ca.crt
a.ssl.keystore.type=PEM
a.ssl.keystore.certificate.chain=${dir:/etc/secrets/mirror-user:user.crt}
a.ssl.keystore.key=${dir:/etc/secrets/mirror-user:user.key}
a.security.protocol=SSL
b.bootstrap.servers=b:9093
b.ssl.truststore.type=PEM
b.ssl.truststore.certificates=${dir:/etc/secrets/b-ca:one.crt}\\n${dir:/etc/secrets/b-ca:two.crt}
b.sasl.mechanism=SCRAM-SHA-512
b.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
username="mirror" password="${dir:/etc/secrets/b-login:password}";
b.security.protocol=SASL_SSL
hub.bootstrap.servers=hub:9092
hub.config.storage.replication.factor=-1
emit.heartbeats.enabled=false
a->hub.enabled=true
a->hub.topics=orders|payments
a->hub.replication.factor=-1
a->hub.tasks.max=4
a->hub.emit.checkpoints.enabled=false
b->hub.enabled=true
b->hub.groups=.*
b->hub.sync.group.offsets.enabled=true
"""


def exported(directory: Path, text: str, *options: str) -> tuple[list[dict[str, Any]], Result]:
    """Run the command. Return the resources that it prints, and its result."""
    file = directory / "mm2.properties"
    file.write_text(text, "ascii")
    result = CliRunner().invoke(
        export_group, ["strimzi", str(file), *options], catch_exceptions=False
    )
    return list(yaml.safe_load_all(result.stdout)), result


def test_flow_is_a_mirror_with_the_settings_that_each_connector_reads(tmp_path: Path) -> None:
    (resource,), result = exported(tmp_path, MIRROR, "--name", "orders")
    assert resource["apiVersion"] == "kafka.strimzi.io/v1"
    assert resource["metadata"]["name"] == "orders"
    spec = resource["spec"]
    assert spec["target"] == {
        "alias": "target",
        "bootstrapServers": "kafka1:9092",
        "config": {"offset.storage.replication.factor": "1"},
        "groupId": "mirrormaker2-cluster",
        "configStorageTopic": "mirrormaker2-cluster-configs",
        "offsetStorageTopic": "mirrormaker2-cluster-offsets",
        "statusStorageTopic": "mirrormaker2-cluster-status",
    }
    (mirror,) = spec["mirrors"]
    assert mirror["source"] == {
        "alias": "source",
        "bootstrapServers": "s1:9093,s2:9093",
        "tls": {"trustedCertificates": [{"secretName": "source-ca", "certificate": "ca.crt"}]},
        "authentication": {
            "type": "plain",
            "username": "token",
            "passwordSecret": {"secretName": "source-login", "password": "password"},
        },
        "config": {"ssl.protocol": "TLSv1.2"},
    }
    assert mirror["topicsPattern"] == "orders"
    assert mirror["groupsExcludePattern"] == "test-.*"
    assert mirror["sourceConnector"]["tasksMax"] == 3
    assert mirror["sourceConnector"]["config"]["replication.factor"] == "2"
    fetched = mirror["sourceConnector"]["config"]["source.consumer.max.partition.fetch.bytes"]
    assert fetched == "2000000"
    assert "sync.group.offsets.enabled" not in mirror["sourceConnector"]["config"]
    assert mirror["checkpointConnector"]["config"]["sync.group.offsets.enabled"] == "true"
    assert "heartbeatConnector" not in mirror
    listed = {line.strip().partition(": ")[0] for line in result.stderr.splitlines()[1:]}
    assert listed == {
        "source.ssl.truststore.location",
        "source.ssl.truststore.password",
        "source.sasl.jaas.config",
        "source->target.emit.heartbeats.enabled",
        "target->source.topics",
        "listeners",
    }


def test_no_secret_is_printed(tmp_path: Path) -> None:
    for version in ("v1", "v1beta2"):
        _, result = exported(tmp_path, MIRROR, "--api-version", version)
        assert "s3cret" not in result.output
        assert "st0repass" not in result.output


def test_v1beta2_has_clusters_and_heartbeats(tmp_path: Path) -> None:
    (resource,), _ = exported(tmp_path, MIRROR, "--api-version", "v1beta2")
    spec = resource["spec"]
    assert spec["connectCluster"] == "target"
    assert [cluster["alias"] for cluster in spec["clusters"]] == ["source", "target"]
    (mirror,) = spec["mirrors"]
    assert (mirror["sourceCluster"], mirror["targetCluster"]) == ("source", "target")
    assert "heartbeatConnector" in mirror


def test_each_target_is_a_resource_of_its_own(tmp_path: Path) -> None:
    both = MIRROR + "target->source.enabled=true\n"
    resources, _ = exported(tmp_path, both, "--name", "m")
    assert [one["metadata"]["name"] for one in resources] == ["m-target", "m-source"]
    assert [one["spec"]["target"]["alias"] for one in resources] == ["target", "source"]


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_what_is_exported_can_be_imported_again(version: str, tmp_path: Path) -> None:
    _, result = exported(tmp_path, IMPORTED, "--api-version", version)
    assert result.stderr == ""
    file, again = tmp_path / "mirror.yaml", tmp_path / "again.properties"
    file.write_text(result.stdout, "utf-8")
    arguments = ["strimzi", str(file), "--output", str(again)]
    CliRunner().invoke(import_group, arguments, catch_exceptions=False)
    first, second = (
        load_properties(tmp_path / "mm2.properties").mapping,
        load_properties(again).mapping,
    )
    assert set(first.pop("clusters").split(",")) == set(second.pop("clusters").split(","))
    assert second == first


def test_login_without_a_type_of_strimzi_is_custom_with_variables_for_secrets(
    tmp_path: Path,
) -> None:
    text = MIRROR.replace("mechanism=PLAIN", "mechanism=OAUTHBEARER")
    (resource,), result = exported(tmp_path, text)
    authentication = resource["spec"]["mirrors"][0]["source"]["authentication"]
    assert authentication == {
        "type": "custom",
        "sasl": True,
        "config": {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": (
                f'{PLAIN} required username="token" '
                'password="${strimzienv:SOURCE_LOGIN_PASSWORD}";'
            ),
        },
    }
    assert resource["spec"]["template"]["connectContainer"]["env"] == [
        {
            "name": "SOURCE_LOGIN_PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "source-login", "key": "password"}},
        }
    ]
    assert (
        "  source.sasl.jaas.config: create the Secret source-login with the option password"
        in result.stderr
    )


def test_file_without_an_enabled_flow_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No source->target replication flows"):
        exported(tmp_path, MIRROR.replace("enabled=true\n", "enabled=false\n", 1))


def test_login_and_stores_of_all_clusters_are_in_the_clusters_alone(tmp_path: Path) -> None:
    """A store in the connectors beside certificates of a cluster ends Strimzi's clients."""
    shared = MIRROR.replace("source.ssl.truststore", "ssl.truststore")
    assert shared != MIRROR
    (resource,), result = exported(tmp_path, shared)
    (mirror,) = resource["spec"]["mirrors"]
    for connector in ("sourceConnector", "checkpointConnector"):
        settings = mirror[connector]["config"]
        assert not [key for key in settings if "truststore" in key]
    assert "tls" in mirror["source"]
    assert "write it into the config of the connectors" not in result.stderr


def test_clients_of_the_target_are_in_the_config_of_its_workers(tmp_path: Path) -> None:
    """A source connector writes its records with the producer of the worker."""
    text = (
        MIRROR
        + "target.producer.max.request.size=1000\ntarget.admin.retries=3\n"
        + "target.consumer.interceptor.classes=a.B\nsource.producer.linger.ms=5\n"
        + "offset.storage.partitions=5\nstatus.storage.topic=mine\n"
    )
    (resource,), result = exported(tmp_path, text)
    (mirror,) = resource["spec"]["mirrors"]
    assert resource["spec"]["target"]["config"] == {
        "offset.storage.replication.factor": "1",
        "producer.max.request.size": "1000",
        "admin.retries": "3",
        "offset.storage.partitions": "5",
    }
    for connector in ("sourceConnector", "checkpointConnector"):
        config = mirror[connector]["config"]
        assert config["target.producer.max.request.size"] == "1000"
        assert config["source.producer.linger.ms"] == "5"
    assert "config" in mirror["source"]
    assert "producer.linger.ms" not in mirror["source"]["config"]
    assert "  target.consumer.interceptor.classes: Strimzi refuses this key" in result.stderr
    assert "  status.storage.topic: Strimzi's workers have a group" in result.stderr


@pytest.mark.parametrize(
    ("password", "secret", "key", "remark"),
    [
        ("${dir:/etc/secrets/login:pw}", "login", "pw", None),
        ("${dir:/run/Mirror_Login:pw}", "mirror-login", "pw", "with the file /run/Mirror_Login/pw"),
        ("${file:/opt/Access.properties:PW}", "access", "PW", "with PW of /opt/Access.properties"),
        ("${env:PASSWORD}", "source-login", "password", "with the value of ${env:PASSWORD}"),
        ("a${env:PASSWORD}", "source-login", "password", "with the password of this login"),
        ("${dir:/etc/secrets/Login:a b}", "login", "a-b", "with the file /etc/secrets/Login/a b"),
    ],
)
def test_placeholder_of_a_password_is_a_key_of_a_secret(
    password: str, secret: str, key: str, remark: str | None, tmp_path: Path
) -> None:
    (resource,), result = exported(tmp_path, MIRROR.replace("s3cret", password))
    login = resource["spec"]["mirrors"][0]["source"]["authentication"]
    assert login["passwordSecret"] == {"secretName": secret, "password": key}
    created = f"  source.sasl.jaas.config: create the Secret {secret} {remark} as {key}\n"
    assert (created in result.stderr) == (remark is not None)
    assert ("source.sasl.jaas.config" in result.stderr) == (remark is not None)


def test_placeholder_of_a_setting_is_a_variable_of_the_pods(tmp_path: Path) -> None:
    text = MIRROR + (
        "source->target.a.key=x ${env:NAME}\nsource->target.b.key=${file:/f.properties:k}\n"
        "source->target.c.key=${dir:/etc/secrets/c:k}\nsource->target.d.key=${vault:x:y}\n"
    )
    (resource,), result = exported(tmp_path, text)
    config = resource["spec"]["mirrors"][0]["sourceConnector"]["config"]
    assert {key: config[f"{key}.key"] for key in "abcd"} == {
        "a": "x ${strimzienv:NAME}",
        "b": "${strimzienv:F_K}",
        "c": "${strimzienv:C_K}",
        "d": "${vault:x:y}",
    }
    assert [one["name"] for one in resource["spec"]["template"]["connectContainer"]["env"]] == [
        "F_K",
        "C_K",
    ]
    assert "  source->target.a.key: set the variable NAME in spec.template" in result.stderr
    assert "  source->target.b.key: create the Secret f with k of /f.properties" in result.stderr
    assert "  source->target.d.key: ${vault:x:y} stays as text" in result.stderr


def test_trust_store_below_the_secrets_is_named_only_if_it_is_pem(tmp_path: Path) -> None:
    text = MIRROR.replace("/home/truststore.jks", "/etc/secrets/store/truststore.jks")
    (resource,), _ = exported(tmp_path, text)
    tls = resource["spec"]["mirrors"][0]["source"]["tls"]
    assert tls == {"trustedCertificates": [{"secretName": "source-ca", "certificate": "ca.crt"}]}


def test_key_store_beside_a_certificate_of_a_secret_is_listed(tmp_path: Path) -> None:
    text = IMPORTED + "a.ssl.keystore.password=s3cret\na.ssl.truststore.password=s3cret\n"
    _, result = exported(tmp_path, text)
    assert "  a.ssl.keystore.password: has no effect beside the certificate" in result.stderr
    assert "  a.ssl.truststore.password: has no effect beside the trusted" in result.stderr


def test_cluster_without_servers_is_listed(tmp_path: Path) -> None:
    _, result = exported(tmp_path, MIRROR.replace("target.bootstrap.servers", "target.x"))
    assert "  target.bootstrap.servers: is missing" in result.stderr


def test_names_are_valid_and_differ(tmp_path: Path) -> None:
    text = MIRROR.replace("source", "East_1").replace("target", "east.1")
    resources, _ = exported(tmp_path, text + "east.1->East_1.enabled=true\n", "--name", "m")
    assert [one["metadata"]["name"] for one in resources] == ["m-east-1", "m-east-1-2"]
    assert [one["spec"]["target"]["alias"] for one in resources] == ["east.1", "East_1"]
    secret = resources[0]["spec"]["mirrors"][0]["source"]["tls"]["trustedCertificates"][0]
    assert secret["secretName"] == "east-1-ca"


def test_secret_to_create_is_not_called_like_one_that_exists(tmp_path: Path) -> None:
    text = MIRROR + "source->target.a.key=${dir:/etc/secrets/source-ca:x}\n"
    (resource,), _ = exported(tmp_path, text)
    secret = resource["spec"]["mirrors"][0]["source"]["tls"]["trustedCertificates"][0]
    assert secret["secretName"] == "source-ca-2"


@pytest.mark.parametrize("name", ["My-Mirror", "a_b", "-a", "a" * 64, "a.b"])
def test_name_that_kubernetes_refuses_is_a_fault(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Kubernetes refuses this name"):
        exported(tmp_path, MIRROR, "--name", name)


def test_alias_that_strimzi_refuses_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Strimzi refuses the alias so~urce"):
        exported(tmp_path, MIRROR.replace("source", "so~urce"))


def test_connector_that_is_absent_takes_no_key_along(tmp_path: Path) -> None:
    text = MIRROR + "emit.checkpoints.enabled=false\nemit.heartbeats.interval.seconds=5\n"
    (resource,), result = exported(tmp_path, text)
    assert "checkpointConnector" not in resource["spec"]["mirrors"][0]
    for key in ("source->target.sync.group.offsets.enabled", "emit.heartbeats.interval.seconds"):
        assert f"  {key}: has no effect on " in result.stderr


def test_file_whose_config_provider_is_unknown_can_be_exported(tmp_path: Path) -> None:
    text = "config.providers=vault\nconfig.providers.vault.class=com.example.Vault\n"
    _, result = exported(tmp_path, MIRROR + text)
    assert "  config.providers: Strimzi has no config provider vault" in result.stderr
    assert "  config.providers.vault.class: is not carried over" in result.stderr
