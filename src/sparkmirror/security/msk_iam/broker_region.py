"""The AWS region of an MSK broker, from its host name."""

from __future__ import annotations

import re

_MSK_HOST = re.compile(
    r"(?:.*\.)?kafka(?:-serverless)?\.(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+)"
    r"(?:\.vpce)?\.(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|api\.aws)\.?"
)


def region_of_host(host: str) -> str:
    """Return the region that the name of a broker holds; empty for other names.

    Names of brokers end like `.c2.kafka.eu-west-1.amazonaws.com`.
    """
    found = _MSK_HOST.fullmatch(host.lower())
    return found["region"] if found else ""
