"""Writes reference data of products, with headers, to the brokers of KAFKA_BROKERS."""

from __future__ import annotations

import json
import os
from typing import Any

from confluent_kafka import Producer

PRODUCTS = 5

if __name__ == "__main__":
    producer: Any = Producer(
        {
            "bootstrap.servers": os.environ["KAFKA_BROKERS"],
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": os.environ["SSL_CERT_FILE"],
            "sasl.mechanism": "PLAIN",
            "sasl.username": "token",
            "sasl.password": os.environ["KAFKA_PWD"],
        }
    )
    for number in range(PRODUCTS):
        producer.produce(
            "products",
            key=f"P{number:02}",
            value=json.dumps({"product_id": f"P{number:02}", "description": "Carrots"}),
            headers={"Content-Type": "application/json"},
        )
    assert producer.flush(60) == 0
