"""TimestampRouter: a topic name with the record's time in it, in UTC."""

from __future__ import annotations

from typing import Final

from sparkmirror.transforms.data.java_exceptions import data_exception
from sparkmirror.transforms.dates.simple_date_format import SimpleDateFormat
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import RecordPart

_MAX_TEXTS: Final = 1000


class TimestampRouter:
    """Replaces `${topic}` and `${timestamp}` in `topic.format`.

    A bad `timestamp.format` fails at the first record, as in Java. No timestamp (-1) is a time of
    1969, as in Java.
    """

    reads = frozenset({RecordPart.TOPIC, RecordPart.TIMESTAMP})
    writes = frozenset({RecordPart.TOPIC})
    drops = False

    def __init__(self, topic_format: str, timestamp_format: str) -> None:
        self.topic_format = topic_format
        self.timestamp_format = timestamp_format
        self._date_format: SimpleDateFormat | None = None
        self._unit_ms = 1
        self._texts: dict[int, str] = {}

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record, routed."""
        if record.timestamp is None:
            raise data_exception(f"Timestamp missing on record: {record.topic}")
        with_topic = self.topic_format.replace("${topic}", record.topic)
        return record.with_topic(with_topic.replace("${timestamp}", self._text(record.timestamp)))

    def _text(self, timestamp: int) -> str:
        if self._date_format is None:
            self._date_format = SimpleDateFormat(self.timestamp_format)
            self._unit_ms = self._date_format.smallest_unit_ms()
        unit = timestamp // self._unit_ms
        text = self._texts.get(unit)
        if text is None:
            if len(self._texts) >= _MAX_TEXTS:
                self._texts.clear()
            text = self._date_format.format(timestamp)
            self._texts[unit] = text
        return text
