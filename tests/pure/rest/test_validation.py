"""Plug-in configs and validations of a real herder, compared with the recordings."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.connect.in_memory_herder import running_herder
from tests.support.rest.java_recordings import RecordedExchange, recorded_exchanges
from tests.support.rest.rest_client import RestResponse, running_rest_client

DIFFERENT = {
    "validate-null": "a NullPointerException in Java",
    "validate-malformed": "a message of Jackson in Java",
    "validate-transforms-missing": "a NullPointerException inside the response in Java",
    "validate-header-converter": "keys of converters in no order in Java",
    "validate-override": "overrides are validated when the producer is created, not before",
}


def our_body(answer: RestResponse) -> str:
    """The body without documentation texts, as the recording hides Apache's."""
    return re.sub(
        r'"documentation":"(?:[^"\\]|\\.)*"', '"documentation":"*"', answer.content.decode()
    )


def java_body(exchange: RecordedExchange) -> str:
    if exchange.raw_body is not None:
        return exchange.raw_body
    body: Any = exchange.body
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def test_validations_are_those_of_the_recording_to_the_byte() -> None:
    different = set()
    with running_herder() as harness, running_rest_client(harness.herder) as client:
        for exchange in recorded_exchanges("02-plugin-config"):
            answer = client.request(
                exchange.method, exchange.path, exchange.request, exchange.request_headers
            )
            same_status = answer.status == exchange.status
            if not same_status or our_body(answer) != java_body(exchange):
                different.add(exchange.name)
    assert different == set(DIFFERENT)
