"""An imported file may start as soon as the Secrets are there as files; each of them is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkmirror.cli.config.command import validation_report
from sparkmirror.cli.strimzi.import_from_strimzi_command import import_group
from sparkmirror.config.notices import NoticeKind
from sparkmirror.lab.cluster.certificates import CertificateAuthority

RESOURCE = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: with-secrets
spec:
  replicas: 1
  target:
    alias: hub
    bootstrapServers: hub:9093
    groupId: g
    configStorageTopic: c
    offsetStorageTopic: o
    statusStorageTopic: s
    tls:
      trustedCertificates:
        - {secretName: hub-ca, certificate: ca.crt}
    authentication:
      type: tls
      certificateAndKey: {secretName: hub-user, certificate: user.crt, key: user.key}
  mirrors:
    - source:
        alias: east
        bootstrapServers: east:9093
        tls:
          trustedCertificates:
            - {secretName: east-ca, certificate: old.crt}
            - {secretName: east-ca, certificate: new.crt}
        authentication:
          type: scram-sha-512
          username: mirror
          passwordSecret: {secretName: east-login, password: password}
      sourceConnector: {}
      checkpointConnector: {}
"""
BEGIN = "-----BEGIN CERTIFICATE"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """The Secrets of the resource, mounted as Kubernetes does it: a directory for each."""
    authority = CertificateAuthority.create(tmp_path / "authority")
    ca = authority.ca_certificate.read_text("ascii")
    pem = authority.issue("mirror").read_text("ascii")
    certificates = pem[pem.index(BEGIN) :]
    directory = tmp_path / "secrets"
    for name, text in {
        "hub-ca/ca.crt": ca,
        "hub-user/user.crt": certificates,
        "hub-user/user.key": pem.removesuffix(certificates),
        "east-ca/old.crt": ca,
        "east-ca/new.crt": ca,
        "east-login/password": "s3cret",
    }.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "ascii")
        file.chmod(0o600)
    return directory


def imported_file(directory: Path, secrets: Path) -> Path:
    """Import the resource; return the file that was written."""
    resource, output = directory / "mirror.yaml", directory / "mm2.properties"
    resource.write_text(RESOURCE, "ascii")
    arguments = ["strimzi", str(resource), "--output", str(output), "--secrets", str(secrets)]
    result = CliRunner().invoke(import_group, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    listed = [line.strip() for line in result.stderr.splitlines() if str(secrets) in line]
    files = [file for file in secrets.rglob("*") if file.is_file()]
    assert sorted(listed) == sorted(map(str, files)), "the command lists the files it needs"
    return output


def test_file_may_start_with_its_secrets(tmp_path: Path, secrets: Path) -> None:
    report = validation_report(imported_file(tmp_path, secrets), None, ())
    assert report.errors == ()
    assert [notice.kind for notice in report.notices] == []


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("hub-ca/ca.crt", "hub.ssl.truststore.location"),
        ("hub-user/user.crt", "hub.ssl.keystore.key"),
        ("hub-user/user.key", "hub.ssl.keystore.key"),
    ],
)
def test_secret_with_a_wrong_text_is_a_fault_of_its_store(
    name: str, key: str, tmp_path: Path, secrets: Path
) -> None:
    file = imported_file(tmp_path, secrets)
    (secrets / name).write_text("no PEM", "ascii")
    assert [error.key for error in validation_report(file, None, ()).errors] == [key]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("hub-user/user.crt", "hub.ssl.keystore.certificate.chain"),
        ("east-ca/new.crt", "east.ssl.truststore.certificates"),
        ("east-login/password", "east.sasl.jaas.config"),
    ],
)
def test_secret_that_is_missing_is_named_with_the_key_that_needs_it(
    name: str, key: str, tmp_path: Path, secrets: Path
) -> None:
    file = imported_file(tmp_path, secrets)
    (secrets / name).unlink()
    (notice,) = validation_report(file, None, ()).notices
    assert (notice.kind, notice.key) == (NoticeKind.UNRESOLVED_VARIABLE, key)
    assert "has no such file" in notice.message
