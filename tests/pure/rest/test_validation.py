"""Plug-in configs and validations of a real herder over HTTP, compared with the recordings."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.connect.in_memory_herder import running_herder
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import RestResponse, running_rest_client

DIFFERENT = {
    "validate-null": "a NullPointerException in Java",
    "validate-malformed": "Jackson's words in Java",
    "validate-transforms-missing": "a NullPointerException inside the answer",
    "validate-header-converter": "keys of converters in no order in Java",
    "validate-override": "the producer's own table judges overrides when it is made, not before",
}


def told_by_us(answer: RestResponse) -> str:
    """Our answer with our descriptions hidden, as the recording hides Apache's."""
    return re.sub(
        r'"documentation":"(?:[^"\\]|\\.)*"', '"documentation":"*"', answer.content.decode()
    )


def told_by_java(exchange: RecordedExchange) -> str:
    if exchange.raw_body is not None:
        return exchange.raw_body
    body: Any = exchange.body
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def test_validations_are_those_of_the_recording_to_the_byte() -> None:
    different = set()
    with running_herder() as stage, running_rest_client(stage.herder) as client:
        for exchange in recorded_exchanges("02-plugin-config"):
            answer = client.request(
                exchange.method, exchange.path, exchange.request, exchange.request_headers
            )
            same = answer.status == exchange.status
            if not same or told_by_us(answer) != told_by_java(exchange):
                different.add(exchange.name)
    assert different == set(DIFFERENT)
