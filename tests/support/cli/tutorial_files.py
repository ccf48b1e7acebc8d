"""Files that tutorials print."""

from __future__ import annotations

from tests.support.tutorials.tutorial import TUTORIALS

QUICKSTART_WORKER_FILE = (TUTORIALS / "000" / "kafka-connect.properties").read_text("utf-8")
"""The file as the tutorial prints it. Confluent's image keeps no order of lines."""
