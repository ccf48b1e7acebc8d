"""The assertion of the `sasl.oauthbearer.assertion.*` keys."""

from __future__ import annotations

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.definition.value_types import ParsedValue
from sparkmirror.config.secrets.password import Password
from sparkmirror.config.tables.client.oauthbearer import ASSERTION
from sparkmirror.errors import ConfigError
from sparkmirror.security.login_settings import LoginSettings
from sparkmirror.security.oauthbearer.allowed_resources import AllowedResources
from sparkmirror.security.oauthbearer.assertion import (
    AssertionFile,
    AssertionSource,
    SignedAssertion,
)

ASSERTION_FILE = "sasl.oauthbearer.assertion.file"
PRIVATE_KEY_FILE = "sasl.oauthbearer.assertion.private.key.file"
PASSPHRASE = "sasl.oauthbearer.assertion.private.key.passphrase"  # noqa: S105 - a key
TEMPLATE_FILE = "sasl.oauthbearer.assertion.template.file"
ISSUER = "sasl.oauthbearer.assertion.claim.iss"
CLAIMS = ("sasl.oauthbearer.assertion.claim.aud", ISSUER, "sasl.oauthbearer.assertion.claim.sub")


def read_assertion(settings: LoginSettings, *, is_needed: bool) -> AssertionSource | None:
    """Return the assertion; None if none is needed and none is configured. Raises ConfigError.

    A client without a need for one has one if a file or an issuer is named, as in Java.
    """
    properties = settings.properties
    allowed = AllowedResources.from_environment(settings.environment)
    ready = properties.get(ASSERTION_FILE, "").strip()
    if ready:
        allowed.require_file(ASSERTION_FILE, ready)
        return AssertionFile(file=ready)
    if not is_needed and not properties.get(ISSUER, "").strip():
        return None
    key_file = properties.get(PRIVATE_KEY_FILE, "").strip()
    if not key_file:
        raise ConfigError.of(
            PRIVATE_KEY_FILE,
            f"{PRIVATE_KEY_FILE} is missing: an assertion needs a key; or set {ASSERTION_FILE}",
        )
    allowed.require_file(PRIVATE_KEY_FILE, key_file)
    template = properties.get(TEMPLATE_FILE, "").strip()
    if template:
        allowed.require_file(TEMPLATE_FILE, template)
    values = ConfigDef(*ASSERTION).parse(properties)
    passphrase = values[PASSPHRASE]
    assert passphrase is None or isinstance(passphrase, Password)
    return SignedAssertion(
        algorithm=str(values["sasl.oauthbearer.assertion.algorithm"]).upper(),
        private_key_file=key_file,
        passphrase=passphrase,
        template_file=template,
        claims=frozenset(
            (key.rpartition(".")[2], properties[key]) for key in CLAIMS if properties.get(key)
        ),
        expires_in_s=_whole_number(values["sasl.oauthbearer.assertion.claim.exp.seconds"]),
        valid_before_s=_whole_number(values["sasl.oauthbearer.assertion.claim.nbf.seconds"]),
        includes_id=values["sasl.oauthbearer.assertion.claim.jti.include"] is True,
    )


def _whole_number(value: ParsedValue) -> int:
    assert isinstance(value, int)
    return value
