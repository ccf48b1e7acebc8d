"""Passwords of users for SCRAM. Brokers get the salted hash, not the password."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from enum import Enum
from functools import partial

from sparkmirror.backoff import seconds_left
from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Controller, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

ALTER_USER_SCRAM_CREDENTIALS = Api(
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, (0,)
)
ITERATIONS = 4096
_SALT_BYTES = 24


class ScramMechanism(Enum):
    """A SCRAM mechanism: its number in the protocol and its hash function."""

    SCRAM_SHA_256 = (1, "sha256")
    SCRAM_SHA_512 = (2, "sha512")


def alter_user_scram_credentials(
    router: Router, users: Mapping[str, str], *, timeout_s: float = CALL_TIMEOUT_S
) -> None:
    """Set the passwords of users for all SCRAM mechanisms. Raises for the first user refused."""
    deadline = time.monotonic() + timeout_s
    for mechanism in ScramMechanism:
        answer = router.call(
            ALTER_USER_SCRAM_CREDENTIALS,
            partial(_request, mechanism, users),
            Controller(),
            codes=lambda answer: [result.error_code for result in answer.results],
            timeout_s=seconds_left(deadline),
        )
        for result in answer.results:
            if result.error_code:
                raise ClusterError(
                    router.client.cluster,
                    f"SCRAM password of {result.user}: {ErrorCode(result.error_code)}"
                    f" {result.error_message or ''}",
                )


def _request(
    mechanism: ScramMechanism, users: Mapping[str, str]
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[],
        upsertions=[_upsertion(user, mechanism, password) for user, password in users.items()],
    )


def _upsertion(
    user: str, mechanism: ScramMechanism, password: str
) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    number, hash_name = mechanism.value
    salt = os.urandom(_SALT_BYTES)
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user,
        mechanism=number,
        iterations=ITERATIONS,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, ITERATIONS),
    )
