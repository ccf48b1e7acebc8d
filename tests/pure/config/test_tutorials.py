"""Files as in tutorials, with duplicates, blanks, quotes and placeholders."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.cli.config.worker_start_checks import worker_start_checks
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.files.worker_file import WorkerFile
from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.review.file_validation import validate_file
from sparkmirror.config.secrets.jaas import parse_login_module
from sparkmirror.model import SourceAndTarget

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
IAM_WORKER = """
bootstrap.servers=b-1.dest.abc123.c2.kafka.us-east-1.amazonaws.com:9098
group.id=connect-mm2
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
"""
FLOW = SourceAndTarget("source", "target")

CLOUD_TO_OWN = f"""# a cloud service as the source, own brokers as the target
clusters=source, target
source.bootstrap.servers=broker-0.example.com:9093,broker-1.example.com:9093
source.security.protocol=SASL_SSL
source.ssl.protocol=TLSv1.2
source.sasl.mechanism=PLAIN
source.sasl.jaas.config={PLAIN} required username="token" password="s3cret";
target.bootstrap.servers=kafka1:9092,kafka2:9093,kafka3:9094
source->target.enabled=true
source->target.topics=orders
"""

TRUSTSTORE = """clusters=source, target
source.bootstrap.servers=cluster.example.com:443
source.security.protocol=SSL
source.ssl.truststore.password=password
source.ssl.truststore.location=/home/truststore.jks
target.bootstrap.servers=kafka1:9092
source->target.enabled=true
source->target.topics=products
"""

PLACEHOLDERS = """clusters=source,target
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
source.bootstrap.servers=${{file:{secrets}:SRC_BROKERS}}
target.bootstrap.servers=${{file:{secrets}:TGT_BROKERS}}
target.security.protocol=SASL_SSL
target.sasl.mechanism=PLAIN
source.sasl.jaas.config=first
source.sasl.jaas.config={module} required username="${{file:{secrets}:KEY}}" \\
    password="${{file:{secrets}:SECRET}}";
source->target.enabled=true
source->target.topics=topic1,topic2
"""

RENDERED_BY_COMPOSE = """bootstrap.servers=broker:29092
rest.port=8083
group.id="mm2-connect"
config.storage.topic="connect-configs"
offset.storage.topic="connect-offsets"
status.storage.topic="connect-status"
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
value.converter= org.apache.kafka.connect.converters.ByteArrayConverter
internal.key.converter=org.apache.kafka.connect.json.JsonConverter
internal.key.converter.schemas.enable=false
connector.client.config.override.policy=All
rest.advertised.host.name="localhost"
plugin.path=/usr/share/java/,/usr/share/confluent-hub-components/
offset.flush.interval.ms=10000
"""


def opened(text: str) -> MirrorMakerConfig:
    return MirrorMakerConfig.open(parse_properties(text.encode(), file="mm2.properties"), {})


def test_a_java_trust_store_is_the_only_fault_of_its_tutorial() -> None:
    file = parse_properties(TRUSTSTORE.encode(), file="mm2.properties")
    (error,) = validate_file(file, {}, worker_start_checks({})).errors
    assert (error.line, error.key) == (5, "source.ssl.truststore.location")


@pytest.mark.parametrize("text", [CLOUD_TO_OWN], ids=["sasl"])
def test_a_dedicated_tutorial_runs_as_written(text: str) -> None:
    file = parse_properties(text.encode(), file="mm2.properties")
    review = validate_file(file, {}, worker_start_checks({}))
    assert review.errors == ()
    assert [notice.kind for notice in review.notices] == [NoticeKind.IN_PLAIN_TEXT]
    found = opened(text)
    assert FLOW in found.flows()
    assert found.client_config("source", "consumer")["security.protocol"] in ("SASL_SSL", "SSL")
    assert found.client_config("target", "producer")["security.protocol"] == "PLAINTEXT"


def test_placeholders_inside_a_login_module_are_all_expanded(tmp_path: Path) -> None:
    secrets = tmp_path / "access.properties"
    secrets.write_text("SRC_BROKERS=a:1\nTGT_BROKERS=b:1\nKEY=$ConnectionString\nSECRET=x=y;z\n")
    found = opened(PLACEHOLDERS.format(secrets=secrets, module=PLAIN))
    config = found.layered_connector_config(FLOW, MirrorConnector.SOURCE).props
    text = found.expand(config).values["source.consumer.sasl.jaas.config"]
    module, _ = parse_login_module(text)
    assert module.options == {"username": "$ConnectionString", "password": "x=y;z"}
    assert "x=y;z" not in str(config)
    (duplicate,) = found.properties.duplicates
    assert (duplicate.key, duplicate.lines) == ("source.sasl.jaas.config", (8, 9))


def test_a_placeholder_without_a_provider_stays_and_is_a_fault_where_the_start_fails() -> None:
    lines = [line for line in PLACEHOLDERS.splitlines() if not line.startswith("config.providers")]
    text = "\n".join(lines).format(secrets="/properties/access.properties", module=PLAIN)
    file = parse_properties(text.encode(), file="mm2.properties")
    review = validate_file(file, {}, worker_start_checks({}))
    assert [(error.line, error.key) for error in review.errors] == [
        (None, "target.sasl.jaas.config"),
        (2, "source.bootstrap.servers"),
        (3, "target.bootstrap.servers"),
    ]
    assert NoticeKind.UNRESOLVED_VARIABLE in {notice.kind for notice in review.notices}
    worker = opened(text).worker_config(FLOW)
    assert worker["bootstrap.servers"] == "${file:/properties/access.properties:TGT_BROKERS}"


def test_the_worker_file_of_the_iam_tutorial_is_accepted() -> None:
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": (
            "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
        ),
    }
    lines = [
        f"{prefix}{key}={value}"
        for prefix in ("", "producer.", "consumer.")
        for key, value in login.items()
    ]
    text = IAM_WORKER + "\n".join(lines)
    report = validate_file(
        parse_properties(text.encode(), file="connect-distributed.properties"),
        {},
        worker_start_checks({}),
    )
    assert report.errors == ()


def test_a_worker_file_with_quotes_old_keys_and_blanks_is_accepted() -> None:
    file = parse_properties(RENDERED_BY_COMPOSE.encode(), file="connect.properties")
    assert validate_file(file, {}, worker_start_checks({})).errors == ()
    config = WorkerFile.open(file, {}).config()
    assert config["group.id"] == '"mm2-connect"'
    assert config["listeners"] == ("http://:8083",)
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    assert config["value.converter"] == converter


@pytest.mark.parametrize(
    "options",
    ["username='$ConnectionString' password='p'", 'username="$ConnectionString" password=abc_1-2'],
)
def test_options_may_have_single_double_or_no_quotes(options: str) -> None:
    module, notices = parse_login_module(f"{PLAIN} required {options};")
    assert module.options["username"] == "$ConnectionString"
    assert notices == ()
