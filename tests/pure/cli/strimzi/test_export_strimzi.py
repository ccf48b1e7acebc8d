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


def test_login_without_a_type_of_strimzi_is_custom_and_has_no_options(tmp_path: Path) -> None:
    text = MIRROR.replace("mechanism=PLAIN", "mechanism=OAUTHBEARER")
    (resource,), result = exported(tmp_path, text)
    authentication = resource["spec"]["mirrors"][0]["source"]["authentication"]
    assert authentication == {
        "type": "custom",
        "sasl": True,
        "config": {"sasl.mechanism": "OAUTHBEARER"},
    }
    assert "  source.sasl.jaas.config: its options may be secrets" in result.stderr


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
