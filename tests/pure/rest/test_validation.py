"""Plug-in configs and validations of a real herder over HTTP, compared with the recordings."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.herders import herding
from tests.support.rest_client import Answer, client_of
from tests.support.rest_recordings import Exchange, exchanges

DIFFERENT = {
    "validate-null": "a NullPointerException in Java",
    "validate-malformed": "Jackson's words in Java",
    "validate-transforms-missing": "a NullPointerException inside the answer",
    "validate-header-converter": "keys of converters in no order in Java",
    "validate-override": "the producer's own table judges overrides when it is made, not before",
}


def told_by_us(answer: Answer) -> str:
    """Our answer with our descriptions hidden, as the recording hides Apache's."""
    return re.sub(
        r'"documentation":"(?:[^"\\]|\\.)*"', '"documentation":"*"', answer.content.decode()
    )


def told_by_java(exchange: Exchange) -> str:
    if exchange.text is not None:
        return exchange.text
    body: Any = exchange.body
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def test_validations_are_those_of_the_recording_to_the_byte() -> None:
    different = set()
    with herding() as stage, client_of(stage.herder) as client:
        for exchange in exchanges("02-plugin-config"):
            answer = client.ask(
                exchange.method, exchange.path, exchange.request, exchange.sent_headers
            )
            same = answer.status == exchange.status
            if not same or told_by_us(answer) != told_by_java(exchange):
                different.add(exchange.name)
    assert different == set(DIFFERENT)
