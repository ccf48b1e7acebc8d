"""Requests made of the description: every answer is one that the description has."""

from __future__ import annotations

import pytest

from tests.fuzz.rest_requests import send_requests

REQUESTS = 60
"""Each costs 40 ms to make. `make fuzz` sends more."""


@pytest.mark.timeout(300)
def test_no_request_gets_an_answer_that_the_description_does_not_have() -> None:
    answers = send_requests(REQUESTS, seed_number=11)
    assert answers.total() >= REQUESTS
    assert len({answer.rpartition(" ")[0] for answer in answers}) > 12, "operations"
    assert {answer.rpartition(" ")[2] for answer in answers} >= {"200", "404", "500"}, "statuses"
