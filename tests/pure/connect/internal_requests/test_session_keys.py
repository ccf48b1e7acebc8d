"""The leader writes session keys; every worker signs and verifies with the last one."""

from __future__ import annotations

import base64

import pytest

from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.internal_requests.inter_worker_settings import InterWorkerSettings
from sparkmirror.connect.internal_requests.session_keys import (
    SessionKeys,
    generate_session_key,
    reason_for_new_key,
)
from sparkmirror.errors import BadRequest, ConfigError, Forbidden, RequestError, WorkerStarting
from sparkmirror.mirror.connect_topics.connect_configs import SessionKey
from sparkmirror.store.config_backing_store import KafkaConfigBackingStore
from tests.support.connect.in_memory_stores import MemoryLog, memory_config_store

HOUR_MS = 3_600_000
CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
WORKER = {
    "group.id": "g",
    "bootstrap.servers": "b:1",
    "key.converter": CONVERTER,
    "value.converter": CONVERTER,
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


UNSUPPORTED = (
    "This worker does not support the 'HmacSHA512' key signing algorithm used by other workers."
    " This worker is currently configured to use: [HmacSHA256]. Check that all workers'"
    " configuration files permit the same set of signature algorithms, and correct any"
    " misconfigured worker and restart it."
)
NO_KEY = (
    "This worker is still starting up and has not been able to read a session key from the config"
    " topic yet"
)


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def settings_of(**keys: str) -> InterWorkerSettings:
    given = {f"inter.worker.{name.replace('__', '.')}": value for name, value in keys.items()}
    return InterWorkerSettings.from_config(DISTRIBUTED.parse({**WORKER, **given}))


def started_store(log: MemoryLog) -> KafkaConfigBackingStore:
    store = memory_config_store(log)
    store.start(lambda _: None)
    return store


def follower_after(log: MemoryLog) -> SessionKeys:
    """The keys of a worker that has read everything until now."""
    return SessionKeys(started_store(MemoryLog(log.records)), InterWorkerSettings())


class LateLog(MemoryLog):
    """The log of a worker that reads what another one wrote only when it must."""

    def __init__(self, written: MemoryLog) -> None:
        super().__init__(written.records)
        self._written = written
        self.reads = 0

    def read_to_end(self, timeout_s: float = 0.0) -> None:
        self.reads += 1
        self.append(self._written.records[len(self.records) :])


def lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def test_a_worker_without_inter_worker_keys_has_the_defaults_of_connect() -> None:
    assert settings_of() == InterWorkerSettings()
    assert InterWorkerSettings().key_bytes == 32


def test_the_signature_algorithm_must_be_one_that_workers_verify() -> None:
    with pytest.raises(ConfigError) as raised:
        settings_of(signature__algorithm="HmacSHA512")
    assert str(raised.value) == (
        "Invalid value HmacSHA512 for configuration inter.worker.signature.algorithm: Signature"
        " algorithm must be present in inter.worker.verification.algorithms list"
    )


def test_a_key_has_the_configured_algorithm_and_size() -> None:
    settings = settings_of(key__generation__algorithm="HmacSHA512", key__size="200")
    key = generate_session_key(settings, 7)
    assert (key.algorithm, len(base64.b64decode(key.key)), key.created_ms) == ("HmacSHA512", 25, 7)
    assert key != generate_session_key(settings, 7)


def test_a_key_that_is_too_short_is_refused() -> None:
    with pytest.raises(ConfigError, match="Key length must be at least 40 bits"):
        settings_of(key__size="39")


@pytest.mark.parametrize(
    ("settings", "age_ms", "reason"),
    [
        (InterWorkerSettings(), HOUR_MS - 1, ""),
        (InterWorkerSettings(), HOUR_MS, "the existing key has expired"),
        (InterWorkerSettings(key_ttl_ms=0), 1000 * HOUR_MS, ""),
        (InterWorkerSettings(key_algorithm="HmacSHA512"), 0, "another algorithm or size"),
        (InterWorkerSettings(key_bits=128), 0, "another algorithm or size"),
    ],
)
def test_a_key_is_replaced_when_it_expires_or_when_the_config_asks_for_another_kind(
    settings: InterWorkerSettings, age_ms: int, reason: str
) -> None:
    key = generate_session_key(InterWorkerSettings(), 5)
    found = reason_for_new_key(key, settings, 5 + age_ms)
    assert (reason in found) if reason else not found


def test_a_key_that_is_not_base64_is_replaced() -> None:
    key = SessionKey(key="%%%=", algorithm="HmacSHA256", created_ms=5)
    assert reason_for_new_key(key, InterWorkerSettings(), 5)


def test_the_leader_writes_the_first_key_and_then_one_whenever_the_last_has_expired() -> None:
    log, clock = MemoryLog(), Clock()
    keys = SessionKeys(started_store(log), InterWorkerSettings(key_ttl_ms=60_000), clock)
    assert keys.replace_expired_key() == 60
    clock.now_s += 45
    assert keys.replace_expired_key() == 15
    assert len(log.records) == 1
    clock.now_s += 15
    assert keys.replace_expired_key() == 60
    assert [record.key for record in log.records] == [b"session-key", b"session-key"]
    assert log.records[0].value != log.records[1].value


def test_a_key_without_a_time_to_live_never_expires() -> None:
    keys = SessionKeys(started_store(MemoryLog()), InterWorkerSettings(key_ttl_ms=0), Clock())
    assert keys.replace_expired_key() is None


def test_workers_that_have_read_the_key_verify_each_others_requests() -> None:
    log = MemoryLog()
    leader = SessionKeys(started_store(log), InterWorkerSettings())
    leader.replace_expired_key()
    follower = follower_after(log)
    leader.verify(lower(follower.sign(b"[]")), b"[]")
    with pytest.raises(Forbidden, match=r"^Internal request contained invalid signature\.$"):
        leader.verify(lower(follower.sign(b"[]")), b"[{}]")


def test_a_worker_signs_with_a_rotated_key_once_it_has_read_it() -> None:
    log, clock = MemoryLog(), Clock()
    leader = SessionKeys(started_store(log), InterWorkerSettings(key_ttl_ms=1000), clock)
    leader.replace_expired_key()
    with_old_key = lower(follower_after(log).sign(b""))
    clock.now_s += 1
    leader.replace_expired_key()
    with pytest.raises(Forbidden):
        leader.verify(with_old_key, b"")
    leader.verify(lower(follower_after(log).sign(b"")), b"")


def test_a_worker_reads_a_later_key_before_it_refuses_a_signature() -> None:
    log, clock = MemoryLog(), Clock()
    settings = InterWorkerSettings(key_ttl_ms=1000)
    leader = SessionKeys(started_store(log), settings, clock)
    leader.replace_expired_key()
    late = LateLog(log)
    follower = SessionKeys(started_store(late), settings, clock)
    clock.now_s += 1
    leader.replace_expired_key()
    follower.verify(lower(leader.sign(b"x")), b"x")
    assert late.reads == 1
    for _ in range(3):
        with pytest.raises(Forbidden):
            follower.verify(lower(leader.sign(b"x")), b"y")
    assert late.reads == 1, "wrong signatures cost one read a second at most"
    clock.now_s += 1
    with pytest.raises(Forbidden):
        follower.verify(lower(leader.sign(b"x")), b"y")
    assert late.reads == 2


@pytest.mark.parametrize(
    ("headers", "error", "text"),
    [
        ({}, BadRequest, "Internal request missing required signature"),
        (
            {"x-connect-authorization": "", "x-connect-request-signature-algorithm": "HmacSHA512"},
            BadRequest,
            UNSUPPORTED,
        ),
        (
            {"x-connect-authorization": "", "x-connect-request-signature-algorithm": "HmacSHA256"},
            WorkerStarting,
            NO_KEY,
        ),
    ],
)
def test_a_request_that_cannot_be_verified_has_the_error_of_connect(
    headers: dict[str, str], error: type[RequestError], text: str
) -> None:
    keys = SessionKeys(started_store(MemoryLog()), InterWorkerSettings())
    with pytest.raises(error) as raised:
        keys.verify(headers, b"")
    assert str(raised.value) == text


def test_every_configured_algorithm_is_verified() -> None:
    log = MemoryLog()
    both = ("HmacSHA256", "HmacSHA512")
    verifier = SessionKeys(started_store(log), InterWorkerSettings(verification_algorithms=both))
    verifier.replace_expired_key()
    settings = InterWorkerSettings(signature_algorithm="HmacSHA512", verification_algorithms=both)
    signer = SessionKeys(started_store(MemoryLog(log.records)), settings)
    verifier.verify(lower(signer.sign(b"x")), b"x")
