"""Receipts as rows of a table."""

from __future__ import annotations

import re

from sparkmirror.copy.control.messages import Hello
from sparkmirror.copy.driver.lost_attempt_receipts import MissingReceipt
from sparkmirror.copy.receipt import AttemptEpoch, Receipt
from sparkmirror.engine.spark.receipt_rows import (
    RECEIPT_SCHEMA,
    TABLE_COLUMNS,
    TaskAttemptInfo,
    missing_receipt_row,
    receipts_of,
    returned_attempts,
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
ATTEMPT = TaskAttemptInfo(
    flow="A->B", epoch=4, task=1, attempt=2, attempt_number=77, started_ms=5, ended_ms=6
)


def test_a_row_has_a_value_for_every_column_of_the_schema() -> None:
    row = dict(zip(NAMES, ATTEMPT.to_row(RECEIPT, {"plain": 1}), strict=True))
    assert (row["flow"], row["topic"], row["partition"]) == ("A->B", "orders", 3)
    assert (row["records"], row["bytes"], row["lanes"]) == (9, 900, {"plain": 1})
    assert (row["epoch"], row["task"], row["attempt"], row["outcome"]) == (4, 1, 2, "done")
    for name in NAMES:
        if name != "attempt_number":  # which only the driver needs
            assert any(name in column for column in TABLE_COLUMNS), name


def test_an_attempt_returns_a_row_without_a_topic_even_if_it_has_copied_nothing() -> None:
    [returned] = ATTEMPT.to_rows([])
    assert receipts_of([returned]) == []
    assert returned_attempts([returned]) == {AttemptEpoch(epoch=4, attempt=77)}
    rows = ATTEMPT.to_rows([(RECEIPT, {"plain": 1})])
    assert receipts_of(rows) == [ATTEMPT.to_row(RECEIPT, {"plain": 1})]
    assert returned_attempts(rows) == {AttemptEpoch(epoch=4, attempt=77)}


def test_the_row_of_a_lost_attempt_has_outcome_lost() -> None:
    hello = Hello(task=1, attempt=77, host="h", pid=1, epoch=4, retry=2)
    lost = MissingReceipt(hello=hello, started_ms=5, ended_ms=6, receipt=RECEIPT)
    row = dict(zip(NAMES, missing_receipt_row("A->B", lost), strict=True))
    assert (row["epoch"], row["task"], row["attempt"], row["outcome"]) == (4, 1, 2, "lost")
    assert (row["source_first"], row["source_last"], row["records"]) == (10, 19, 9)
    assert (row["lanes"], row["first_ms"], row["last_ms"]) == ({}, -1, -1)
