"""The login of Amazon MSK: AWS_MSK_IAM, or OAUTHBEARER with AWS's callback handler.

Both log in with OAUTHBEARER on the wire: the IAM listener of MSK accepts either, and AWS's signing
library for Python makes tokens for it.

The region of a token is that of the broker: from its host name, else from the option `awsRegion`
(ours), else from AWS_REGION or the profile. So one login serves clusters of several regions.
"""

from __future__ import annotations

import threading

from sparkmirror.config.secrets.jaas import SASL_JAAS_CONFIG
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.msk_iam.aws_signer import (
    DEFAULT_SESSION_NAME,
    GLOBAL_STS,
    AwsCredentialSettings,
    MskTokenRetriever,
    default_region,
    require_signer,
)
from sparkmirror.security.msk_iam.broker_region import region_of_host
from sparkmirror.security.oauthbearer.refresh_schedule import RefreshSchedule
from sparkmirror.security.oauthbearer.refreshing_tokens import RefreshingTokens
from sparkmirror.security.oauthbearer.shared_sources import shared_token_source
from sparkmirror.security.sasl_credentials import BearerToken, TokenLogin, TokenUnavailable

IAM_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
IAM_LOGIN_MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"


def msk_login(settings: LoginSettings) -> TokenLogin:
    """Return the login. Raises ConfigError without AWS's library, or for invalid options."""
    require_signer("sasl.mechanism")
    options = settings.options
    if options.get("awsRoleExternalId") and not options.get("awsRoleArn"):
        raise ConfigError.of(
            SASL_JAAS_CONFIG, f"{SASL_JAAS_CONFIG} has awsRoleExternalId, but no awsRoleArn"
        )
    credentials = AwsCredentialSettings(
        profile=options.get("awsProfileName", ""),
        role_arn=options.get("awsRoleArn", ""),
        role_session_name=options.get("awsRoleSessionName") or DEFAULT_SESSION_NAME,
        role_external_id=Password(options.get("awsRoleExternalId", "")),
        sts_region=options.get("awsStsRegion") or GLOBAL_STS,
        role_access_key_id=options.get("awsRoleAccessKeyId", ""),
        role_secret_access_key=Password(options.get("awsRoleSecretAccessKey", "")),
        role_session_token=Password(options.get("awsRoleSessionToken", "")),
    )
    schedule = RefreshSchedule.from_properties(settings.properties)
    return TokenLogin(tokens=MskIamTokens(credentials, schedule, options.get("awsRegion", "")))


class MskIamTokens:
    """One refreshed token per region. Thread-safe. Equal settings are equal sources."""

    def __init__(
        self, credentials: AwsCredentialSettings, schedule: RefreshSchedule, region: str = ""
    ) -> None:
        self._settings = (credentials, schedule, region)
        self._credentials = credentials
        self._schedule = schedule
        self._region = region
        self._lock = threading.Lock()
        self._sources: dict[str, RefreshingTokens] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MskIamTokens) and self._settings == other._settings

    def __hash__(self) -> int:
        return hash(self._settings)

    def token(self, host: str) -> BearerToken:
        """Return the token of the region of this broker. Raises TokenUnavailable."""
        region = region_of_host(host) or self._fallback_region(host)
        with self._lock:
            source = self._sources.get(region)
            if source is None:
                retriever = MskTokenRetriever(region=region, credentials=self._credentials)
                source = self._sources[region] = shared_token_source(retriever, self._schedule, {})
        return source.token(host)

    def _fallback_region(self, host: str) -> str:
        with self._lock:
            self._region = self._region or default_region(self._credentials.profile)
            if self._region:
                return self._region
        raise TokenUnavailable(
            f"the AWS region of {host} is not known: its name holds none; set AWS_REGION, or the"
            f" option awsRegion of {SASL_JAAS_CONFIG}"
        )
