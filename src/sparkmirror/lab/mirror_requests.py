"""Sends a broker the requests that mirrors and tests send to it.

The builder of the class archive uses this: the archive has the classes that the broker has loaded.
"""

from __future__ import annotations

import time

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.groups import (
    alter_consumer_group_offsets,
    list_consumer_group_offsets,
    list_consumer_groups,
)
from sparkmirror.cluster.produce_and_consume import ProducerRecord, produce_records, read_topic
from sparkmirror.mirror.topics.acls import ALLOW, LITERAL, READ, TOPIC, AclBinding
from sparkmirror.model import OffsetAndMetadata, TopicPartition
from sparkmirror.wire.batch.compression import CompressionType
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import Record, build_batch
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.group_membership import (
    GroupProtocol,
    JoinedGroup,
    join_group,
    leave_group,
    send_heartbeat,
    sync_group,
)
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from sparkmirror.wire.protocol.transactions import end_txn, transaction_version

_NAME = "requests"
_PARTITION = TopicPartition(_NAME, 0)
_GROUP_TIMEOUT_MS = 30_000


def send_mirror_requests(access: ClusterAccess) -> None:
    """Create a topic, an ACL and groups, write and read. Requires all rights, and an authorizer.

    Blocks. Raises ClusterError.
    """
    with Admin(access) as admin:
        admin.create_topic(NewTopic(name=_NAME, partitions=2))
        _change_topic(admin)
        produce_records(access, _NAME, [ProducerRecord(value=b"plain"), ProducerRecord(key=b"key")])
        for commit in (True, False):
            _write_transaction(admin.router, commit=commit)
        read_topic(access, _NAME, committed_only=True)
        _join_and_leave(admin.router)
        offset = OffsetAndMetadata(offset=1)
        alter_consumer_group_offsets(admin.router, f"{_NAME}-offsets", {_PARTITION: offset})
        list_consumer_groups(admin.router)
        list_consumer_group_offsets(admin.router, [f"{_NAME}-offsets"])
        admin.delete_topics([_NAME])


def _change_topic(admin: Admin) -> None:
    acl = AclBinding(
        resource_type=TOPIC,
        resource_name=_NAME,
        pattern_type=LITERAL,
        principal=f"User:{_NAME}",
        host="*",
        operation=READ,
        permission=ALLOW,
    )
    admin.create_acls([acl])
    admin.describe_topic_acls()
    admin.create_partitions({_NAME: 3})
    admin.describe_configs([_NAME])
    admin.describe_cluster()


def _write_transaction(router: Router, *, commit: bool) -> None:
    identity = init_producer_id(router, transactional_id=_NAME)
    producer = BatchProducer(
        producer_id=identity.producer_id, epoch=identity.epoch, transactional=True
    )
    record = Record(0, time.time_ns() // 1_000_000, b"key", b"value")
    batch = memoryview(build_batch([record], CompressionType.GZIP))
    buffers = forward_batch(read_header(batch), batch, producer, 0)
    append_batch(router, _PARTITION, buffers, transactional_id=_NAME)
    end_txn(router, _NAME, identity, commit=commit, version=transaction_version(router))


def _join_and_leave(router: Router) -> None:
    protocol = GroupProtocol(
        group_id=_NAME,
        protocol_type="connect",
        protocol="sessioned",
        session_timeout_ms=_GROUP_TIMEOUT_MS,
        rebalance_timeout_ms=_GROUP_TIMEOUT_MS,
    )
    joined = join_group(router, protocol)
    if isinstance(joined, JoinedGroup):
        sync_group(router, _NAME, joined, {joined.member_id: b""})
        send_heartbeat(router, _NAME, joined)
        leave_group(router, _NAME, [joined.member_id])
