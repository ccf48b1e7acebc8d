"""All parsers that read bytes of other programs, people or networks."""

from __future__ import annotations

from functools import cache

from tests.fuzz import (
    broker_targets,
    control_targets,
    rest_targets,
    store_targets,
    text_targets,
    transform_targets,
)
from tests.fuzz.fuzz_target import FuzzTarget


@cache
def all_targets() -> tuple[FuzzTarget, ...]:
    """Return every target; the first call makes keys and certificates for the seeds."""
    return (
        text_targets.PROPERTIES,
        text_targets.JAAS,
        text_targets.pem_target(),
        store_targets.JKS,
        store_targets.JCEKS,
        store_targets.PKCS12,
        store_targets.ENCRYPTED_PEM,
        rest_targets.BODIES,
        rest_targets.PATHS,
        rest_targets.HTTP,
        control_targets.HANDSHAKES,
        *control_targets.tls_handshakes(),
        control_targets.FRAMES,
        control_targets.MESSAGES,
        broker_targets.ANSWERS,
        broker_targets.BATCHES,
        transform_targets.JSON_VALUES,
        transform_targets.JSON_ENVELOPES,
        transform_targets.HEADER_LITERALS,
        transform_targets.HEADERS_OF_RECORDS,
        transform_targets.TRANSFORMED_RECORDS,
    )
