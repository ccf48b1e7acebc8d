"""Receipts as rows of a table."""

from __future__ import annotations

import re

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.lost_attempt_receipts import MissingReceipt
from sparkmirror.copy.receipt import Receipt
from sparkmirror.engine.spark.receipt_rows import (
    RECEIPT_SCHEMA,
    TABLE_COLUMNS,
    TaskAttemptInfo,
    missing_receipt_row,
)
from sparkmirror.model import TopicPartition

NAMES = re.findall(r"(\w+) (?:string|int|bigint|map<[^>]*>)", RECEIPT_SCHEMA)
RECEIPT = Receipt(
    source=TopicPartition("orders", 3),
    target=TopicPartition("A.orders", 3),
    source_first=10,
    source_last=19,
    target_first=70,
    target_last=80,
    records=9,
    bytes=900,
)


def test_a_row_has_a_value_for_every_column_of_the_schema() -> None:
    attempt = TaskAttemptInfo(flow="A->B", epoch=4, task=1, attempt=2, started_ms=5, ended_ms=6)
    row = dict(zip(NAMES, attempt.to_row(RECEIPT, {"plain": 1}), strict=True))
    assert (row["flow"], row["topic"], row["partition"]) == ("A->B", "orders", 3)
    assert (row["records"], row["bytes"], row["lanes"]) == (9, 900, {"plain": 1})
    assert (row["epoch"], row["task"], row["attempt"], row["outcome"]) == (4, 1, 2, "done")
    for name in NAMES:
        assert any(name in column for column in TABLE_COLUMNS), name


def test_the_row_of_a_lost_attempt_has_outcome_lost() -> None:
    hello = Hello(task=1, attempt=77, host="h", pid=1, epoch=4, retry=2)
    lost = MissingReceipt(hello=hello, started_ms=5, ended_ms=6, receipt=RECEIPT)
    row = dict(zip(NAMES, missing_receipt_row("A->B", lost), strict=True))
    assert (row["epoch"], row["task"], row["attempt"], row["outcome"]) == (4, 1, 2, "lost")
    assert (row["source_first"], row["source_last"], row["records"]) == (10, 19, 9)
    assert (row["lanes"], row["first_ms"], row["last_ms"]) == ({}, -1, -1)
