"""kafka-python's clients: not imported by this program, there for a program that asks for them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import sparkmirror.wire.net.sasl.mechanisms, sparkmirror.wire.protocol.kafka_python_messages
assert "kafka.consumer" not in sys.modules, "it takes a tenth of a second in every process"
assert "kafka.net.connection" not in sys.modules
import kafka
assert not hasattr(kafka, "__nothing__")
from kafka import KafkaConsumer, TopicPartition
from kafka.net import KafkaConnection
assert KafkaConsumer is kafka.KafkaConsumer is sys.modules["kafka.consumer"].KafkaConsumer
assert kafka.__version__ and kafka.net.KafkaConnection is KafkaConnection
assert not hasattr(kafka, "nothing")
"""


def test_the_clients_of_kafka_python_are_imported_when_a_program_asks_for_them() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
