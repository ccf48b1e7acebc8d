"""Each key that changes nothing is named, with the reason and what to write instead."""

from __future__ import annotations

import pytest

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.notices import NoticeKind
from sparkmirror.config.review.unused_keys import MAX_SUGGESTIONS, unused_key_notices
from sparkmirror.config.suggestions import closest_name

TWO = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"


def messages_by_key(lines: str, before: str = TWO) -> dict[str, str]:
    """Key to message."""
    found = MirrorMakerConfig.open(
        parse_properties((before + lines).encode(), file="mm2.properties"), {}
    )
    notices = unused_key_notices(found)
    assert all(notice.kind is NoticeKind.NO_EFFECT for notice in notices)
    assert all(found.properties.lines[notice.key] == notice.line for notice in notices)
    return {notice.key: notice.message for notice in notices}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("use.defaults.from=source", "only below a flow; write A->B.use.defaults.from"),
        ("exactly.once.source.support=enabled", "write B.exactly.once.source.support"),
        ("offset.flush.interval.ms=1", "write B.offset.flush.interval.ms"),
        ("group.id=g", "write B.group.id"),
        ("topic.creation.groups=x", "write A->B.topic.creation.groups"),
        ("transforms.x.type=y", "only below a flow; write A->B.transforms.x.type"),
        ("B.predicates.x.type=y", "write A->B.predicates.x.type"),
        ("A->B.predicates.x.type=y", "A->B.predicates does not name the alias x"),
        ("A->B.sparkmirror.transform.value.formt=json", "did you mean A->B.sparkmirror.transform."),
        ("producer.linger.ms=5", "write A.producer.linger.ms or B.producer.linger.ms"),
        ("sparkmirror.on.los=skip", "did you mean sparkmirror.on.loss?"),
        ("B.sparkmirror.on.loss=skip", "write A->B.sparkmirror.on.loss, or sparkmirror.on.loss"),
        ("A->B.sparkmirror.receipts=x", "no connector reads sparkmirror.receipts"),
        ("worker.foo=1", "nothing reads it"),
        ("groups.excludes=x", "did you mean groups.exclude?"),
        ("cluster=A,B", "did you mean clusters?"),
        ("C.bootstrap.servers=c:1", "clusters lists A, B, not C"),
        ("A->B.offset.flush.interval.ms=1", "write B.offset.flush.interval.ms"),
        ("A->B.enable=true", "did you mean A->B.enabled?"),
        ("A->B.emit.heartbeats=false", "did you mean A->B.emit.heartbeats.enabled?"),
        ("A->B.ssl.protocol=TLSv1.3", "write A.ssl.protocol or B.ssl.protocol"),
        ("A->B.source.cluster.max.poll.records=1", "write A->B.source.consumer.max.poll.records"),
        ("A->B.listeners=x", "no connector reads listeners"),
        ("A->C.enabled=true", "clusters lists A, B, not C"),
        ("A->A.enabled=true", "two different clusters"),
        ("B->A.topics=x", "the flow B->A is not enabled"),
        ("B.tasks.max=2", "write A->B.tasks.max, or tasks.max for all flows"),
        ("B.use.defaults.from=source", "write A->B.use.defaults.from"),
        ("B.max.poll.records=2", "for clients write B.consumer.max.poll.records"),
        ("B.listeners=http://:1", "write listeners without B."),
        ("B.connector.client.config.override.policy=None", "has no effect"),
        ("config.providers.vault.class=x", "config.providers does not name this provider"),
    ],
)
def test_a_key_without_effect_gets_a_notice_with_advice(line: str, reason: str) -> None:
    messages = messages_by_key(line)
    assert list(messages) == [line.partition("=")[0]]
    assert reason in next(iter(messages.values()))


@pytest.mark.parametrize(
    "line",
    [
        "topics=x",
        "tasks.max=2",
        "security.protocol=SSL",
        "replication.policy.separator=_",
        "replication.policy.of.my.own=1",
        "offset.storage.replication.factor=1",
        "key.converter.schemas.enable=false",
        "task.shutdown.graceful.timeout.ms=1",
        "emit.heartbeats.enabled=true",
        "dedicated.mode.enable.internal.rest=true",
        "listeners=http://:1\nlisteners.https.ssl.protocol=x",
        "sparkmirror.on.loss=skip",
        "A->B.sparkmirror.on.loss=skip",
        "A->B.sparkmirror.bytes.per.second=1000",
        "sparkmirror.receipts=/r\nsparkmirror.log.dir=/l\nsparkmirror.epoch.seconds=60",
        "spark.master=local[2]\nspark.executor.memory=1g",
        "A.consumer.max.poll.records=5",
        "B.producer.linger.ms=5",
        "B.exactly.once.source.support=enabled",
        "B.offset.flush.interval.ms=5",
        "A.ssl.key.password=x",
        "A->B.name=n",
        "A->B.topics.exclude=x",
        "A->B.groups=x",
        "A->B.use.defaults.from=source",
        "A->B.emit.heartbeats.enabled=false",
        "A->B.producer.override.linger.ms=5",
        "A->B.source.consumer.max.poll.records=5",
        "A->B.source.cluster.ssl.protocol=x",
        "A->B.exactly.once.support=required",
        "B->A.emit.heartbeats.interval.seconds=5",
        "B->A.enabled=false\nB->A.emit.heartbeats.enabled=false",
        "plugin.path=/x",
        "config.providers=e\nconfig.providers.e.class=EnvVarConfigProvider",
    ],
)
def test_a_key_with_an_effect_gets_no_notice(line: str) -> None:
    assert messages_by_key(line) == {}


ROUTER = "A->B.transforms=r\nA->B.transforms.r.type=RegexRouter\nA->B.transforms.r.regex=x"


@pytest.mark.parametrize(
    "line",
    [
        "A->B.transforms.r.replacement=y",
        "A->B.predicates=p\nA->B.predicates.p.type=RecordIsTombstone",
        "A->B.transforms.r.predicate=p\nA->B.transforms.r.negate=true",
        "A->B.sparkmirror.transform.value.format=json",
        "sparkmirror.transform.key.format=json",
        "A->B.errors.tolerance=all\nerrors.log.enable=true",
    ],
)
def test_keys_of_transformations_have_an_effect(line: str) -> None:
    assert messages_by_key(f"{ROUTER}\n{line}") == {}


def test_a_key_that_the_class_of_a_transformation_does_not_have_gets_advice() -> None:
    assert messages_by_key(f"{ROUTER}\nA->B.transforms.r.replacemnt=y") == {
        "A->B.transforms.r.replacemnt": "has no effect: the class of the alias has no key "
        "replacemnt; did you mean A->B.transforms.r.replacement?"
    }


def test_keys_of_an_alias_from_a_placeholder_are_taken_as_read() -> None:
    lines = "A->B.transforms=${env:LIST}\nA->B.transforms.r.of.my.own=1"
    assert messages_by_key(lines) == {}


def test_a_key_that_always_loses_names_the_winner() -> None:
    lines = "B.offset.storage.topic=x\noffset.storage.topic=y\n"
    assert messages_by_key(lines) == {
        "B.offset.storage.topic": "has no effect: offset.storage.topic on line 6 wins"
    }


def test_keys_of_a_flow_that_does_not_run_have_no_effect() -> None:
    lines = "emit.heartbeats.enabled=false\nB->A.topics=x\nA.offset.flush.interval.ms=1\n"
    messages = messages_by_key(lines)
    assert "does not run" in messages["B->A.topics"]
    assert "flows into A, and none runs" in messages["A.offset.flush.interval.ms"]


def test_keys_of_a_cluster_without_flows_have_no_effect() -> None:
    before = (
        TWO.replace("A,B", "A,B,C") + "C.bootstrap.servers=c:1\nemit.heartbeats.enabled=false\n"
    )
    assert messages_by_key("", before) == {
        "C.bootstrap.servers": "has no effect: no flow from or to C runs"
    }


def test_mirror_settings_have_no_effect_without_an_enabled_flow() -> None:
    before = TWO.replace("A->B.enabled=true\n", "")
    messages = messages_by_key("topics=x\nA->B.groups=y\nB.ssl.protocol=x\n", before)
    assert messages.keys() == {"topics", "A->B.groups"}
    assert "no flow is enabled" in messages["topics"]


def test_the_producer_of_a_flow_is_not_the_producer_of_the_data() -> None:
    (message,) = messages_by_key("A->B.producer.linger.ms=5").values()
    assert "only the producer of offset syncs" in message
    assert "A->B.producer.override.linger.ms or B.producer.linger.ms" in message


def test_a_deprecated_key_gets_no_second_notice() -> None:
    assert messages_by_key("topics.blacklist=x\nuse.incremental.alter.configs=never\n") == {}


def test_an_alias_that_begins_another_alias_is_not_confused_with_it() -> None:
    before = "clusters=eu,eu-west\neu.bootstrap.servers=a:1\neu-west.bootstrap.servers=b:1\n"
    assert messages_by_key("eu->eu-west.enabled=true\neu->eu-west.topics=x\n", before) == {}


def test_a_misspelt_alias_gets_a_suggestion() -> None:
    before = "clusters=primary,backup\nprimary->backup.enabled=true\n"
    assert (
        "did you mean primary?"
        in messages_by_key("primray.bootstrap.servers=x", before)["primray.bootstrap.servers"]
    )


def test_the_number_of_suggestions_for_one_file_is_limited() -> None:
    messages = messages_by_key("".join(f"topics.exclude{n}=1\n" for n in range(3_000)))
    assert len(messages) == 3_000
    assert sum("did you mean" in text for text in messages.values()) == MAX_SUGGESTIONS


def test_a_name_unlike_all_others_gets_no_suggestion() -> None:
    assert closest_name("zzz", ["topics", "groups"]) is None
