"""All faults of all flows are found at once, each reported once with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.cli.config.worker_start_checks import worker_start_checks
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.review.file_validation import validate_file
from sparkmirror.config.review.findings import ValidationReport
from sparkmirror.errors import ConfigError, PropertiesError
from sparkmirror.security.client_security import ClientSecurity
from tests.support.golden import GOLDEN, golden_json
from tests.support.security.keytool_stores import STORE_PASSWORD

TWO = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"
WORKER = """bootstrap.servers=b:1
group.id=connect
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=c
offset.storage.topic=o
status.storage.topic=s
"""
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PROVIDER = """
config.providers=file
config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
"""


def reviewed(text: str) -> ValidationReport:
    file = parse_properties(text.encode(), file="mm2.properties")
    return validate_file(file, {}, worker_start_checks({}))


def faults(text: str) -> list[tuple[int | None, str, str]]:
    return [(o.line, o.key, o.message) for o in reviewed(text).errors]


def kinds(text: str) -> list[NoticeKind]:
    return [notice.kind for notice in reviewed(text).notices]


def test_a_good_file_has_no_faults_and_no_notices() -> None:
    assert reviewed(TWO + "A->B.topics=orders.*\nreplication.factor=1\n") == ValidationReport(
        errors=(), notices=()
    )


def test_faults_of_all_levels_are_found_at_once_in_the_order_of_the_file() -> None:
    lines = """security.protocol=FOO
dedicated.mode.enable.internal.rest=maybe
replication.factor=x
B.session.timeout.ms=y
A->B.tasks.max=0
A->B.refresh.topics.interval.seconds=z
B.status.storage.partitions=0
A->B.topics=a[
"""
    assert [(line, key) for line, key, _ in faults(TWO + lines)] == [
        (5, "security.protocol"),
        (6, "dedicated.mode.enable.internal.rest"),
        (7, "replication.factor"),
        (8, "B.session.timeout.ms"),
        (9, "A->B.tasks.max"),
        (10, "A->B.refresh.topics.interval.seconds"),
        (11, "B.status.storage.partitions"),
        (12, "A->B.topics"),
    ]


def test_a_fault_in_many_places_is_reported_once() -> None:
    (error,) = reviewed(TWO + "tasks.max=x\n").errors
    assert error.message == (
        "Invalid value x for configuration tasks.max: Not a number of type INT"
    )
    assert len(error.locations) == 4
    assert error.locations[0] == "A->B source"


def test_a_missing_address_names_the_key_to_write() -> None:
    text = "clusters=A,B\nA->B.enabled=true\nB.bootstrap.servers=b:1\nA.bootstrap.servers=\n"
    found = faults(text)
    assert [(line, key) for line, key, _ in found] == [(4, "A.bootstrap.servers")]
    missing = 'Missing required configuration "bootstrap.servers" which has no default value.'
    assert faults(text.replace("A.boot", "C.boot"))[0] == (None, "A.bootstrap.servers", missing)


def test_a_fault_of_all_clients_of_a_cluster_names_them_once() -> None:
    (error,) = reviewed(TWO + "A.security.protocol=FOO\n").errors
    assert error.locations == ("clients of A",)


def test_no_flows_is_a_fault() -> None:
    text = TWO.replace("true", "false") + "emit.heartbeats.enabled=false\n"
    reason = "Enable one, for example A->B.enabled=true"
    assert faults(text) == [(1, "clusters", f"No source->target replication flows. {reason}")]


def test_a_connector_that_is_not_enabled_has_no_faults() -> None:
    report = reviewed(TWO + "B->A.topics=a[\n")
    assert report.errors == ()
    assert [notice.kind for notice in report.notices] == [NoticeKind.NO_EFFECT]


def test_a_file_that_cannot_be_opened_has_a_fault() -> None:
    missing = 'Missing required configuration "clusters" which has no default value.'
    assert faults("foo=bar\n") == [(None, "clusters", missing)]
    (line, key, message) = faults(
        f"{TWO}config.providers=v\nconfig.providers.v.class=com.example.Vault\n"
    )[0]
    assert (line, key) == (6, "config.providers.v.class")
    assert "com.example.Vault could not be found" in message


def test_an_unknown_connector_class_is_a_fault() -> None:
    (error,) = reviewed(TWO + "A->B.connector.class=com.example.Other\n").errors
    assert (error.line, error.key) == (5, "A->B.connector.class")


def test_a_conflict_between_settings_is_a_fault() -> None:
    key = "A->B.exactly.once.support"
    assert key in [key for _, key, _ in faults(f"{TWO}{key}=required\n")]


@pytest.mark.parametrize("prefix", ["", "A->B."])
@pytest.mark.parametrize("key", ["emit.checkpoints.enabled", "emit.offset-syncs.enabled"])
def test_a_flow_without_checkpoints_has_a_notice_and_no_fault(prefix: str, key: str) -> None:
    report = reviewed(f"{TWO}{prefix}{key}=false\n")
    assert not report.errors
    (notice,) = [one for one in report.notices if one.kind is NoticeKind.NOT_RUN]
    assert notice.key == f"{prefix}{key}"
    assert "the checkpoint connector of A->B does not run" in notice.message


def test_exactly_once_needs_the_target_worker_to_support_it() -> None:
    lines = "A->B.exactly.once.support=required\nA->B.consumer.isolation.level=read_committed\n"
    worker = "This worker does not have exactly-once source support enabled."
    assert worker in [message for _, _, message in faults(TWO + lines)]
    enabled = faults(f"{TWO}{lines}B.exactly.once.source.support=enabled\n")
    assert worker not in [message for _, _, message in enabled]


@pytest.mark.parametrize("prefix", ["", "A.", "A.producer."])
def test_a_login_module_is_validated_only_if_the_protocol_needs_it(prefix: str) -> None:
    jaas = f"{prefix}sasl.jaas.config={PLAIN} required password=hunter2 secret;\n"
    login = f"{prefix}security.protocol=SASL_SSL\n{prefix}sasl.mechanism=PLAIN\n"
    found = faults(TWO + login + jaas)
    assert [(line, key) for line, key, _ in found] == [(7, f"{prefix}sasl.jaas.config")]
    assert not any(word in found[0][2] for word in ("hunter2", "secret"))
    assert faults(TWO + jaas) == []


def test_a_login_module_without_semicolon_gets_a_notice() -> None:
    login = "A.security.protocol=SASL_SSL\nA.sasl.mechanism=PLAIN\n"
    lines = f'{login}A.sasl.jaas.config={PLAIN} required username="u" password="${{e:P}}"\n'
    assert faults(TWO + lines) == []
    assert kinds(TWO + lines) == [NoticeKind.JAAS, NoticeKind.UNRESOLVED_VARIABLE]


def test_a_provider_that_cannot_be_read_does_not_hide_other_faults() -> None:
    lines = PROVIDER + "tasks.max=${file:/no/such:n}\nA.ssl.key.password=${file:/no/such:pw}\n"
    found = faults(f"{TWO}{lines}replication.factor=x\n")
    assert [(line, key) for line, key, _ in found] == [
        (8, "tasks.max"),
        (9, "A.ssl.key.password"),
        (10, "replication.factor"),
    ]
    assert "/no/such: there is no such file" in found[0][2]


def test_a_value_from_a_provider_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("pw=hunter2")
    lines = "".join(
        f"{key}=${{file:{file}:pw}}\n"
        for key in (
            "tasks.max",
            "B.session.timeout.ms",
            "A.security.protocol",
            "A->B.topics.exclude",
        )
    )
    review = reviewed(TWO + PROVIDER + lines)
    assert len(review.errors) == 3
    assert "hunter2" not in repr(review)


def test_an_unresolved_placeholder_gets_a_notice() -> None:
    (notice,) = reviewed(TWO + "A->B.topics=${vault:x:y}\n").notices
    assert (notice.kind, notice.line) == (NoticeKind.UNRESOLVED_VARIABLE, 5)


def test_a_secret_in_plain_text_gets_a_notice() -> None:
    assert kinds(TWO + "A.ssl.key.password=hunter2\n") == [NoticeKind.IN_PLAIN_TEXT]
    assert kinds(TWO + "A.ssl.key.password=\n") == []


@pytest.mark.parametrize("key", ["config.storage.topic", "status.storage.topic", "C.group.id"])
def test_a_storage_topic_or_group_shared_by_flows_gets_a_notice(key: str) -> None:
    text = TWO.replace("A,B", "A,B,C") + "C.bootstrap.servers=c:1\n"
    notices = [n for n in reviewed(f"{text}{key}=x\n").notices if n.key == key]
    assert {notice.kind for notice in notices} == {NoticeKind.SHARED_BY_FLOWS}
    assert any("A->C, B->C" in notice.message for notice in notices)


def test_notices_of_all_kinds_have_file_and_line() -> None:
    text = TWO + "topics.blacklist=x # y\nuse.defaults.from=source\nA.ssl.key.password=p\n"
    notices = reviewed(text).notices
    assert [notice.line for notice in notices] == [5, 5, 6, 7]
    assert {notice.file for notice in notices} == {"mm2.properties"}


def test_a_good_worker_file_has_no_faults() -> None:
    assert reviewed(WORKER) == ValidationReport(errors=(), notices=())


def recorded_refusals() -> list[tuple[str, str, str]]:
    """Files that Java refused before it talked to any broker: (name, text, its reason)."""
    found = []
    for case in golden_json("cli/cli.json"):
        reason = "".join(case["exception_lines"][:1]).partition(": ")[2]
        before_any_broker = reason and "Timed out" not in reason
        if case["file_content"] and before_any_broker and "--clusters" not in case["args"]:
            name = case["args"][0].removesuffix(".properties")
            found.append((name, case["file_content"], reason))
    return found


@pytest.mark.parametrize(
    ("text", "reason"),
    [case[1:] for case in recorded_refusals()],
    ids=[case[0] for case in recorded_refusals()],
)
def test_a_file_that_java_refuses_is_refused_for_the_same_reason(text: str, reason: str) -> None:
    try:
        messages = [message for _, _, message in faults(text)]
    except PropertiesError as error:
        messages = [str(error)]
    assert any(reason.rstrip(".") in message for message in messages)


@pytest.mark.parametrize(
    ("listener", "fault"),
    [("ftp://x:1", "must be either"), ("http://x", "right format"), ("x:1", "right format")],
)
def test_an_invalid_listener_is_a_fault(listener: str, fault: str) -> None:
    lines = f"dedicated.mode.enable.internal.rest=true\nlisteners=http://:1,{listener}\n"
    for found in (faults(TWO + lines), faults(f"{WORKER}listeners=http://:1,{listener}\n")):
        assert [key for _, key, _ in found] == ["listeners"]
        assert fault in found[0][2]


def test_sparkmirror_keys_are_validated_and_have_an_effect() -> None:
    flow = "A->B.sparkmirror.on.loss=unknown\nsparkmirror.bytes.per.second=-1\n"
    process = "sparkmirror.epoch.seconds=0\n"
    assert [key for _, key, _ in faults(TWO + flow + process)] == [
        "A->B.sparkmirror.on.loss",
        "sparkmirror.bytes.per.second",
        "sparkmirror.epoch.seconds",
    ]
    assert [key for _, key, _ in faults(WORKER + process)] == ["sparkmirror.epoch.seconds"]
    known = "spark.master=local[2]\nsparkmirror.receipts=/r\nsparkmirror.log.dir=/l\n"
    assert not [n for n in reviewed(WORKER + known).notices if n.kind is NoticeKind.NO_EFFECT]


def test_faults_and_notices_of_a_worker_file() -> None:
    text = f"""{WORKER}heartbeat.interval.ms=x
rest.port=8083
internal.key.converter=x
grup.id=y
producer.acks=all
sasl.jaas.config={PLAIN} bogus;
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
"""
    review = reviewed(text)
    assert [(o.line, o.key) for o in review.errors] == [
        (8, "heartbeat.interval.ms"),
        (13, "sasl.jaas.config"),
    ]
    assert [(n.line, n.kind) for n in review.notices] == [
        (9, NoticeKind.DEPRECATED_KEY),
        (10, NoticeKind.DEPRECATED_KEY),
        (11, NoticeKind.NO_EFFECT),
        (13, NoticeKind.IN_PLAIN_TEXT),
    ]
    assert "did you mean group.id?" in review.notices[2].message


def test_an_unreadable_provider_does_not_hide_faults_of_a_worker_file() -> None:
    text = f"{WORKER}{PROVIDER}session.timeout.ms=${{file:/no/such:x}}\nheartbeat.interval.ms=x\n"
    assert [key for _, key, _ in faults(text)] == ["session.timeout.ms", "heartbeat.interval.ms"]


def test_a_value_from_a_provider_of_a_worker_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("pw=hunter2")
    review = reviewed(f"{WORKER}{PROVIDER}session.timeout.ms=${{file:{file}:pw}}\n")
    assert len(review.errors) == 1
    assert "hunter2" not in repr(review)


def test_a_list_with_repeated_items_gets_one_notice_with_its_line() -> None:
    text = TWO.replace("A,B", "A,B,A") + "A.ssl.enabled.protocols=TLSv1.3,TLSv1.3\n"
    notices = reviewed(text).notices
    assert [(n.line, n.key, n.kind) for n in notices] == [
        (1, "clusters", NoticeKind.REPEATED_ITEM),
        (5, "A.ssl.enabled.protocols", NoticeKind.REPEATED_ITEM),
    ]
    (notice,) = reviewed(f"{WORKER}ssl.enabled.protocols=TLSv1.3,TLSv1.3\n").notices
    assert (notice.line, notice.key) == (8, "ssl.enabled.protocols")


def test_a_fault_of_an_alias_from_a_provider_names_the_key_of_the_list(tmp_path: Path) -> None:
    file = tmp_path / "s.properties"
    file.write_text("pw=hunter2")
    (fault,) = faults(f"{TWO}{PROVIDER}A->B.transforms=${{file:{file}:pw}}\n")
    assert fault[:2] == (8, "A->B.transforms")


@pytest.mark.parametrize(("text", "last"), [(TWO, 8), (WORKER, 11)], ids=["flows", "worker"])
def test_a_provider_that_does_not_exist_does_not_hide_other_faults(text: str, last: int) -> None:
    lines = (
        "config.providers=foo\nconfig.providers.foo.class=com.example.Vault\n"
        "offset.storage.partitions=${foo:x}\nstatus.storage.partitions=x\n"
    )
    found = faults(text + lines)
    assert [(line, key) for line, key, _ in found] == [
        (last - 2, "config.providers.foo.class"),
        (last - 1, "offset.storage.partitions"),
        (last, "status.storage.partitions"),
    ]
    assert "com.example.Vault could not be found" in found[0][2]
    assert "config.providers.foo has a fault" in found[1][2]
    assert reviewed(text + lines).notices == ()


def test_a_top_level_fault_of_many_clients_is_reported_once_with_its_line() -> None:
    (error,) = reviewed(TWO + "replication.policy.class=com.example.Nope\n").errors
    assert (error.line, error.key) == (5, "replication.policy.class")
    assert {"clients of A", "clients of B", "A->B source"} <= set(error.locations)


@pytest.mark.parametrize(
    ("patterns", "hint"),
    [
        ("*foo", ".* instead of *"),
        ("a,*foo", ".* instead of *"),
        ("\\\\p{IsGreek}x,*foo", ""),
        ("a{1,3}", "a comma always starts"),
        ("[,a{1,3}", ""),
    ],
)
def test_a_hint_is_given_only_for_the_pattern_that_failed(patterns: str, hint: str) -> None:
    (fault,) = faults(f"{TWO}A->B.topics={patterns}\n")
    hints = [one for one in (".* instead of *", "a comma always starts") if one in fault[2]]
    assert hints == ([hint] if hint else [])


@pytest.mark.parametrize("server", ["b", "a:99999", "a:1,b", "a:x", ":1", "a:1:", "a b:1"])
def test_an_invalid_bootstrap_address_is_a_fault(server: str) -> None:
    for text, key in ((TWO, "B.bootstrap.servers"), (WORKER, "bootstrap.servers")):
        (fault,) = faults(f"{text}{key}={server}\n")
        assert fault[1] == key
        assert fault[0] is not None
        assert fault[2].startswith("Invalid ")


@pytest.mark.parametrize("server", ["b:1", "[::1]:9092", "PLAINTEXT://b:65535", "a.b-c_d:1,b:2"])
def test_a_valid_bootstrap_address_is_no_fault(server: str) -> None:
    assert faults(f"{TWO}B.bootstrap.servers={server}\n") == []


@pytest.mark.parametrize("policy", ["Nope", "all", "com.example.Policy"])
def test_an_unknown_override_policy_is_a_fault(policy: str) -> None:
    key = "connector.client.config.override.policy"
    (fault,) = faults(f"{WORKER}{key}={policy}\n")
    assert fault[:2] == (8, key)
    assert f"which name matches {policy}, available" in fault[2]


@pytest.mark.parametrize(
    "policy",
    [
        "None",
        "PrincipalConnectorClientConfigOverridePolicy",
        "org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy",
    ],
)
def test_an_override_policy_may_be_given_by_any_of_its_names(policy: str) -> None:
    assert faults(f"{WORKER}connector.client.config.override.policy={policy}\n") == []


SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule"


@pytest.mark.parametrize(
    ("mechanism", "module", "fault"),
    [
        ("PLAIN", PLAIN, None),
        ("SCRAM-SHA-512", SCRAM, None),
        ("SCRAM-SHA-512", PLAIN, None),
        ("PLAIN", "com.example.LoginModule", "sasl.jaas.config"),
        ("AWS_MSK_IAM", IAM, None),
        ("NOPE", PLAIN, "sasl.mechanism"),
    ],
)
def test_a_login_that_the_start_refuses_is_a_fault_with_the_same_message(
    mechanism: str, module: str, fault: str | None
) -> None:
    login = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="u" password="p";',
    }
    for text, prefix in ((TWO, "A."), (WORKER, "")):
        lines = "".join(f"{prefix}{key}={value}\n" for key, value in login.items())
        found = faults(text + lines)
        assert [key for _, key, _ in found] == ([prefix + fault] if fault else [])
        if fault:
            with pytest.raises(ConfigError) as start:
                ClientSecurity.from_properties(login)
            assert found[0][2] == str(start.value)
            assert found[0][0] is not None


@pytest.mark.parametrize(
    ("store", "fault"),
    [("ec.jks", "ssl.key.password"), ("ec.jceks", "ssl.key.password"), ("all.pkcs12", None)],
)
def test_a_store_that_the_start_cannot_open_is_a_fault_with_the_message_of_the_start(
    store: str, fault: str | None
) -> None:
    tls = {
        "security.protocol": "SSL",
        "ssl.keystore.location": str(GOLDEN / "stores" / "java17" / store),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    if fault:
        tls[fault] = "wrong"
    for text, prefix in ((TWO, "A."), (TWO, ""), (WORKER, ""), (WORKER, "producer.")):
        lines = "".join(f"{prefix}{key}={value}\n" for key, value in tls.items())
        found = faults(text + lines)
        assert [key for _, key, _ in found] == ([prefix + fault] if fault else [])
        if fault:
            with pytest.raises(ConfigError) as start:
                ClientSecurity.from_properties(tls)
            assert found[0][2] == str(start.value)
            assert found[0][0] is not None


def test_a_file_that_is_no_store_is_a_fault_of_its_location(tmp_path: Path) -> None:
    file = tmp_path / "store.jks"
    file.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    for name in ("ssl.keystore.location", "ssl.truststore.location"):
        (found,) = faults(f"{TWO}A.security.protocol=SSL\nA.{name}={file}\n")
        assert found[1] == f"A.{name}"
        assert "the store ends too early" in found[2]


@pytest.mark.parametrize("protocol", ["SASL_SSL", "sasl_ssl"])
def test_a_fault_of_the_login_does_not_hide_one_of_tls(protocol: str) -> None:
    lines = f"security.protocol={protocol}\nssl.truststore.location=/no/such.pem\n"
    assert [(line, key) for line, key, _ in faults(WORKER + lines)] == [
        (None, "sasl.jaas.config"),
        (9, "ssl.truststore.location"),
    ]


def test_a_missing_setting_is_a_fault_of_the_prefix_that_sets_the_protocol() -> None:
    assert [key for _, key, _ in faults(f"{TWO}A.security.protocol=SASL_PLAINTEXT\n")] == [
        "A.sasl.jaas.config"
    ]
    (fault,) = faults(f"{TWO}security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n")
    assert fault[:2] == (None, "sasl.jaas.config")


def test_a_client_of_one_flow_is_checked_with_the_keys_that_it_reads() -> None:
    lines = "A->B.source.consumer.security.protocol=SSL\n"
    (error,) = reviewed(f"{TWO}{lines}A->B.consumer.ssl.truststore.location=/no/such.pem\n").errors
    assert (error.line, error.key) == (6, "A->B.consumer.ssl.truststore.location")
    assert error.locations == ("A->B source", "A->B checkpoint")
    (error,) = reviewed(f"{TWO}A->B.producer.override.security.protocol=SASL_SSL\n").errors
    assert error.key == "A->B.producer.override.sasl.jaas.config"


def test_connectors_of_a_disabled_flow_are_not_checked() -> None:
    lines = "A->B.source.consumer.security.protocol=SASL_SSL\n"
    assert faults(TWO + lines) != []
    assert faults(f"{TWO}{lines}A->B.enabled=false\n") == []


def test_a_placeholder_without_its_provider_is_validated_as_plain_text() -> None:
    lines = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    for text, prefix in ((TWO, "A."), (WORKER, "")):
        review = reviewed(text + lines + f"{prefix}sasl.jaas.config=${{file:/s:jaas}}\n")
        assert f"{prefix}sasl.jaas.config" in [error.key for error in review.errors]
        assert "config.providers names no provider 'file'" in review.notices[0].message


def test_a_store_whose_password_cannot_be_fetched_is_not_checked() -> None:
    lines = "ssl.keystore.location=/no/such.pem\nssl.key.password=${file:/no/such:x}\n"
    for text, prefix in ((TWO, "A."), (WORKER, "")):
        tls = "".join(f"{prefix}{line}\n" for line in ("security.protocol=SSL", *lines.split()))
        assert [key for _, key, _ in faults(text + PROVIDER + tls)] == [f"{prefix}ssl.key.password"]


def test_transformations_are_a_fault_of_the_source_connector() -> None:
    assert not reviewed(f"{TWO}A->B.transforms=x\nA->B.transforms.x.type=Filter\n").errors
    lines = "A->B.transforms=x\nA->B.transforms.x.type=Missing\n"
    (error,) = reviewed(TWO + lines).errors
    assert (error.line, error.locations[0]) == (6, "A->B source")
    assert "Class Missing could not be found" in error.message


def test_an_unknown_auto_offset_reset_is_a_fault() -> None:
    (fault,) = faults(f"{TWO}A.consumer.auto.offset.reset=now\n")
    assert fault[:2] == (5, "A.consumer.auto.offset.reset")
    assert faults(f"{TWO}A.consumer.auto.offset.reset=by_duration:PT1H\n") == []


@pytest.mark.parametrize("prefix", ["", "listeners.https."])
def test_an_https_listener_without_a_key_is_a_fault(prefix: str) -> None:
    lines = f"listeners=https://:8443\n{prefix}ssl.keystore.location=/no/such.pem\n"
    for text in (TWO, WORKER):
        (fault,) = faults(text + lines)
        assert fault[1] == f"{prefix}ssl.keystore.location"
    (fault,) = faults(f"{WORKER}rest.extension.classes=com.example.Extension\n")
    assert fault[:2] == (8, "rest.extension.classes")


def test_a_dedicated_file_may_name_policies_and_filters_of_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "acme_names.py").write_text(
        "class Filter:\n    def __init__(self, config): pass\n", encoding="utf-8"
    )
    monkeypatch.setenv("SPARKMIRROR_PLUGIN_MODULES", "acme_names")
    assert faults(TWO + "A->B.topic.filter.class=acme_names:Filter\n") == []
    ((line, key, message),) = faults(TWO + "A->B.topic.filter.class=acme_names:Missing\n")
    assert (line, key) == (5, "A->B.topic.filter.class")
    assert "acme_names:Missing cannot be loaded" in message


def test_a_client_with_config_providers_of_its_own_is_a_fault() -> None:
    ((line, key, message),) = faults(TWO + "A.consumer.config.providers=x\n")
    assert (line, key) == (5, "A.consumer.config.providers")
    assert "declares them in the worker's file, as config.providers" in message


BOTH_WAYS = """clusters=A,B
A.bootstrap.servers=a:1
B.bootstrap.servers=b:1
A->B.enabled=true
B->A.enabled=true
"""


def strip_prefix(flow: str, source: str, **keys: str) -> str:
    """Lines that take the prefix of the source away."""
    lines = {
        "transforms": "r",
        "transforms.r.type": "RegexRouter",
        "transforms.r.regex": rf"{source}\\.(.*)",
        "transforms.r.replacement": "$1",
        **keys,
    }
    return "".join(f"{flow}.{key}={text}\n" for key, text in lines.items())


@pytest.mark.parametrize(
    ("lines", "topic"),
    [
        (strip_prefix("A->B", "A") + strip_prefix("B->A", "B"), "topic"),
        (
            strip_prefix("A->B", "A", topics="orders.*, pay")
            + strip_prefix("B->A", "B", topics=".*"),
            "orders",
        ),
        (strip_prefix("A->B", "A", topics="a") + strip_prefix("B->A", "B", topics="b"), ""),
        (strip_prefix("A->B", "A"), ""),
        (strip_prefix("A->B", "A") + strip_prefix("B->A", "B", enabled="false"), ""),
        ("replication.policy.class=IdentityReplicationPolicy\n", ""),
    ],
)
def test_routes_that_copy_topics_in_a_circle_get_a_notice(lines: str, topic: str) -> None:
    found = [n for n in reviewed(BOTH_WAYS + lines).notices if n.kind is NoticeKind.CIRCLE]
    assert [n.message.partition(" to each other")[0] for n in found] == (
        [f"A->B and B->A copy topics such as {topic}"] if topic else []
    )
    assert [n.key for n in found] == (["A->B.transforms"] if topic else [])
