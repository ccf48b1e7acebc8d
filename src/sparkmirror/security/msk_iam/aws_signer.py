"""Signs tokens with AWS's own library. Only this module imports the libraries of AWS.

They are the extra `msk`. They are loaded with the first token: that takes a second.
"""

from __future__ import annotations

import importlib.util
import os
import time
from dataclasses import dataclass
from typing import Any

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken
from sparkmirror.security.sasl_credentials import TokenUnavailable

DEFAULT_SESSION_NAME = "aws-msk-iam-auth"
"""That of AWS's Java library. It never changes by itself: MSK refuses another principal when a
client authenticates again."""
GLOBAL_STS = "global"
_ADVICE = "check the AWS credentials of this host, awsProfileName and awsRoleArn"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsCredentialSettings:
    """Whose credentials sign a token: those of the default chain, of a profile, or of a role."""

    profile: str = ""
    role_arn: str = ""
    role_session_name: str = DEFAULT_SESSION_NAME
    role_external_id: Password = Password("")
    sts_region: str = GLOBAL_STS
    role_access_key_id: str = ""
    """With it, this key assumes the role, and not the default chain or the profile."""
    role_secret_access_key: Password = Password("")
    role_session_token: Password = Password("")


@dataclass(frozen=True, slots=True, kw_only=True)
class MskTokenRetriever:
    """Signs tokens for the brokers of one region."""

    region: str
    credentials: AwsCredentialSettings

    @property
    def name(self) -> str:
        """The region, and the role or the profile."""
        who = self.credentials.role_arn or self.credentials.profile or "the default credentials"
        return f"AWS IAM token of {who} for MSK in {self.region}"

    def retrieve(self) -> RetrievedToken:
        """Load the credentials again, because they may have changed, and sign."""
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
        from botocore.credentials import CredentialProvider
        from botocore.exceptions import BotoCoreError, ClientError

        settings = self.credentials

        class ConfiguredCredentials(CredentialProvider):
            """The credentials of the settings, in the form that AWS's signer takes."""

            def __init__(self) -> None:
                self.session = None

            def load(self) -> Any:
                return _load_credentials(settings)

        try:
            sign: Any = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider
            token, expires_at_ms = sign(self.region, ConfiguredCredentials())
        except (BotoCoreError, ClientError, ValueError) as error:
            raise TokenUnavailable(f"{error}; {_ADVICE}") from None
        return RetrievedToken.parse(token, expires_at_ms / 1000 - time.time())


def require_signer(key: str) -> None:
    """Raise ConfigError if the extra `msk` is not installed."""
    if importlib.util.find_spec("aws_msk_iam_sasl_signer") is None:
        raise ConfigError.of(
            key,
            f"{key}: a login with AWS IAM needs AWS's signing library: pip install"
            " sparkmirror[msk], also on the hosts of executors",
        )


def default_region(profile: str) -> str:
    """Return the region of the environment or of the profile; empty without one.

    AWS's library for Python reads AWS_DEFAULT_REGION only; that for Java, AWS_REGION.
    Raises TokenUnavailable if the profile does not exist.
    """
    from botocore.exceptions import BotoCoreError

    if region := os.environ.get("AWS_REGION", ""):
        return region
    try:
        return str(_session(profile).get_config_variable("region") or "")
    except BotoCoreError as error:
        raise TokenUnavailable(f"{error}; {_ADVICE}") from None


def _session(profile: str) -> Any:
    import botocore.session

    new_session: Any = botocore.session.Session
    return new_session(profile=profile or None)


def _load_credentials(settings: AwsCredentialSettings) -> Any:
    """Return botocore's credentials. Raises botocore's errors, and ValueError without any."""
    import botocore.credentials

    new_credentials: Any = botocore.credentials.Credentials
    session = _session(settings.profile)
    if settings.role_arn:
        answer = _assume_role(session, settings)
        return new_credentials(
            answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"]
        )
    found = session.get_credentials()
    if found is None:
        raise ValueError("there are no AWS credentials")
    keys = found.get_frozen_credentials()
    return new_credentials(keys.access_key, keys.secret_key, keys.token)


def _assume_role(session: Any, settings: AwsCredentialSettings) -> Any:
    is_global = settings.sts_region == GLOBAL_STS
    own_key = {
        "aws_access_key_id": settings.role_access_key_id,
        "aws_secret_access_key": settings.role_secret_access_key.value,
        "aws_session_token": settings.role_session_token.value or None,
    }
    sts = session.create_client(
        "sts",
        region_name="aws-global" if is_global else settings.sts_region,
        **(own_key if settings.role_access_key_id else {}),
    )
    request = {"RoleArn": settings.role_arn, "RoleSessionName": settings.role_session_name}
    if settings.role_external_id.value:
        request["ExternalId"] = settings.role_external_id.value
    return sts.assume_role(**request)["Credentials"]
