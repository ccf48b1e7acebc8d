"""The ends of certificates, read again when a file changes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security.tls.ssl_config import SslConfig
from sparkmirror.worker.metrics.certificate_figures import CertificateFigures, uses_tls
from tests.support.exposed_series import Series, series, series_of

NAME = "sparkmirror_certificate_expiry_timestamp_seconds"
DAY_S = 86_400


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    created = CertificateAuthority.create(tmp_path_factory.mktemp("lab") / "tls")
    created.issue("alice")
    return created


def ends(
    clients: Mapping[str, Mapping[str, str]], listeners: SslConfig | None = None
) -> dict[Series, float]:
    return series_of(CertificateFigures(lambda: clients, listeners).figures())


def test_ends_of_both_stores_of_a_client_and_of_the_listeners(
    authority: CertificateAuthority,
) -> None:
    stores = {
        "ssl.keystore.location": str(authority.key_store("alice")),
        "ssl.truststore.location": str(authority.ca_certificate),
    }
    clients = {"east": {"security.protocol": "SASL_SSL", **stores}, "west": stores}
    found = ends(clients, SslConfig.from_properties(stores))
    assert found.keys() == {
        series(NAME, cluster=cluster, store=store)
        for cluster in ("east", "listeners")
        for store in ("keystore", "truststore")
    }
    assert all(end_s > time.time() + DAY_S / 2 for end_s in found.values())


def test_a_store_that_changes_is_read_again(
    authority: CertificateAuthority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "own.pem"
    own.write_text("nothing")
    clients = {"east": {"security.protocol": "SSL", "ssl.keystore.location": str(own)}}
    figures = CertificateFigures(lambda: clients)
    assert [*figures.figures()] == [*figures.figures()] == []
    assert len(caplog.messages) == 1
    assert "Cluster east: the expiry of its certificates is unknown" in caplog.messages[0]
    own.write_bytes(authority.key_store("alice").read_bytes())
    assert len([*figures.figures()]) == 1


def test_a_cluster_with_wrong_settings_hides_no_other(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    store = {"security.protocol": "SSL", "ssl.truststore.location": str(authority.ca_certificate)}
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n")
    clients = {
        "both": {**store, "ssl.truststore.certificates": authority.ca_certificate.read_text()},
        "garbage": {**store, "ssl.truststore.location": str(garbage)},
        "good": store,
    }
    assert ends(clients).keys() == {series(NAME, cluster="good", store="truststore")}


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [("SSL", True), ("sasl_ssl", True), ("PLAINTEXT", False), ("SASL_PLAINTEXT", False)],
)
def test_clients_with_tls(protocol: str, expected: bool) -> None:
    assert uses_tls({"security.protocol": protocol}) is expected
    assert not uses_tls({})
