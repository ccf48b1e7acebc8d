"""Lists of trusted certificates: keys of Secrets, named or matched by a pattern. Pure."""

from __future__ import annotations

from typing import Final

from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.cli.strimzi.remarks import StrimziRemark
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.cli.strimzi.resource_to_properties.left_out_fields import unread_remarks
from sparkmirror.cli.strimzi.resource_to_properties.resource_fields import ResourceFields

DEFAULT_CERTIFICATE: Final = "ca.crt"
"""The key of the certificate authority in the Secrets that Strimzi itself creates."""


def trust_store(
    tls: ResourceFields, secrets: SecretFiles, remarks: list[StrimziRemark]
) -> dict[str, str]:
    """Return the trust store. Without certificates the public authorities are trusted."""
    named = [
        key
        for certificate in tls.items("trustedCertificates")
        for key in certificate_keys(certificate, secrets, remarks)
    ]
    remarks += unread_remarks(tls)
    if not named:
        return {}
    store = {"ssl.truststore.type": "PEM"}
    if len(named) == 1:
        return {**store, "ssl.truststore.location": secrets.path(*named[0])}
    placeholders = [secrets.placeholder(*key) for key in named]
    return {**store, "ssl.truststore.certificates": "\n".join(placeholders)}


def certificate_keys(
    certificate: ResourceFields, secrets: SecretFiles, remarks: list[StrimziRemark]
) -> list[SecretKey]:
    """Return the keys that one item of a list means."""
    secret = certificate.required_text("secretName")
    key, pattern = certificate.text("certificate"), certificate.text("pattern")
    remarks += unread_remarks(certificate)
    if key is not None:
        return [SecretKey(secret, key)]
    if pattern is None:
        certificate.fault("certificate", "is missing: name the key of the Secret, or a pattern")
        return []
    found = secrets.matching_keys(secret, pattern)
    if not found:
        text = f"the keys of Secret {secret} are not in this file: {DEFAULT_CERTIFICATE} is assumed"
        remarks.append(StrimziRemark(certificate.path_of("pattern"), text))
    return [SecretKey(secret, name) for name in found or [DEFAULT_CERTIFICATE]]
