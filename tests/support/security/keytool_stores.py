"""Key stores and trust stores that the real `keytool` of a Java makes.

    python -m tests.support.security.keytool_stores <keytool> <directory> [<algorithm> ...]

makes the stores of `tests/golden/stores`, with keys of these algorithms. The keys protect nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STORE_PASSWORD: Final = "store-pw"
KEY_PASSWORD: Final = "key-pw-1"
"""The password of the keys in JKS and JCEKS stores. In PKCS12, keytool has one password only."""

KEY_ALGORITHMS: Final[dict[str, Sequence[str]]] = {
    "rsa": ("-keyalg", "RSA", "-keysize", "2048"),
    "ec": ("-keyalg", "EC", "-keysize", "256"),
    "dsa": ("-keyalg", "DSA", "-keysize", "1024"),
    "ed25519": ("-keyalg", "Ed25519"),
}
STORE_TYPES: Final = ("jks", "jceks", "pkcs12")

_VALID: Final = ("-startdate", "2020/01/01 00:00:00", "-validity", "36500")
_LEGACY: Final = "-J-Dkeystore.pkcs12.legacy"
"""As Java 8 writes PKCS12."""
_PKCS12: Final = ("-storetype", "pkcs12")
_FEW_ITERATIONS: Final = ("-J-Djdk.jceks.iterationCount=10000",)
"""The fewest that keytool allows for JCEKS. The default of 200000 makes tests slow."""
_UNPROTECTED: Final = (
    "-J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE",
    "-J-Dkeystore.pkcs12.macAlgorithm=NONE",
)


@dataclass(frozen=True, slots=True)
class Keytool:
    """The program `keytool`, with English messages."""

    program: Path

    def run(self, *arguments: str | Path) -> None:
        """Run one command. Raises AssertionError with its output if it fails."""
        done = subprocess.run(
            [self.program, "-J-Duser.language=en", *arguments], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def generate_key(
        self, store: Path, store_type: str, algorithm: str, *options: str, alias: str = "me"
    ) -> None:
        """Add a key with a certificate of its own. The store is created if it is not there."""
        key_password = STORE_PASSWORD if store_type == "pkcs12" else KEY_PASSWORD
        self.run(
            *("-genkeypair", "-alias", alias, "-dname", f"CN={alias}", *_VALID),
            *(*KEY_ALGORITHMS[algorithm], "-storetype", store_type, "-keystore", str(store)),
            *("-storepass", STORE_PASSWORD, "-keypass", key_password, *options),
        )

    def trust(self, store: Path, certificate: Path, *options: str, alias: str = "ca") -> None:
        """Add a certificate to trust."""
        self.run(
            *("-importcert", "-noprompt", "-alias", alias, "-file", str(certificate)),
            *("-keystore", str(store), "-storepass", STORE_PASSWORD, *options),
        )

    def convert(self, source: Path, target: Path, store_type: str, *, key_password: str) -> None:
        """Copy the keys of a PKCS12 store into a new store of another type."""
        passwords = () if store_type == "pkcs12" else ("-destkeypass", key_password)
        self.run(
            *("-importkeystore", "-noprompt", "-srckeystore", source, "-destkeystore", target),
            *("-srcstoretype", "pkcs12", "-srcstorepass", STORE_PASSWORD),
            *("-deststoretype", store_type, "-deststorepass", STORE_PASSWORD, *passwords),
            *_FEW_ITERATIONS,
        )


def make_stores(
    keytool: Keytool, directory: Path, algorithms: Sequence[str] = tuple(KEY_ALGORITHMS)
) -> None:
    """Make all stores that the tests read."""
    directory.mkdir(parents=True)
    _make_chain(keytool, directory)
    _make_trust_stores(keytool, directory)
    for store_type in STORE_TYPES:
        for algorithm in algorithms:
            store = directory / f"{algorithm}.{store_type}"
            keytool.generate_key(store, store_type, algorithm, *_FEW_ITERATIONS)
            store = directory / f"all.{store_type}"
            keytool.generate_key(
                store, store_type, algorithm, *_FEW_ITERATIONS, alias=f"my-{algorithm}"
            )
    keytool.generate_key(directory / "rsa-default.jceks", "jceks", "rsa")
    keytool.generate_key(directory / "rsa-legacy.pkcs12", "pkcs12", "rsa", _LEGACY)
    for store_type in ("jceks", "pkcs12"):
        _make_secret_key(keytool, directory / f"secret-key.{store_type}", store_type)


def _make_secret_key(keytool: Keytool, store: Path, store_type: str) -> None:
    """A symmetric key, which TLS does not use, before a private key."""
    keytool.run(
        *("-genseckey", "-alias", "a", "-keyalg", "AES", "-keysize", "128"),
        *("-storetype", store_type, "-keystore", store, "-storepass", STORE_PASSWORD),
    )
    keytool.generate_key(store, store_type, "ec", *_FEW_ITERATIONS)


def _make_chain(keytool: Keytool, directory: Path) -> None:
    """A key whose certificate an intermediate authority has signed: `chain.*`; root: `ca.pem`."""
    stores = {name: directory / f"{name}.tmp" for name in ("root", "between", "leaf")}
    for name, store in stores.items():
        options = ("-ext", "bc:c") if name != "leaf" else ()
        keytool.generate_key(store, "pkcs12", "ec", *options)
    certificates = {name: directory / f"{name}.tmp.pem" for name in stores}
    keytool.run(*_of(stores["root"]), "-exportcert", "-rfc", "-file", certificates["root"])
    for issuer, name in (("root", "between"), ("between", "leaf")):
        request = directory / "request.tmp"
        keytool.run(*_of(stores[name]), "-certreq", "-file", request)
        extension = "bc:c" if name == "between" else "san=dns:localhost"
        keytool.run(
            *(*_of(stores[issuer]), "-gencert", "-rfc", *_VALID, "-ext", extension),
            *("-dname", f"CN={name}", "-infile", request, "-outfile", certificates[name]),
        )
        reply = directory / "reply.tmp"
        path = [*stores][: [*stores].index(name) + 1]
        reply.write_text("".join(_first_certificate(certificates[one]) for one in reversed(path)))
        keytool.run(*_of(stores[name]), "-importcert", "-noprompt", "-file", reply)
    for store_type in STORE_TYPES:
        keytool.convert(
            stores["leaf"],
            directory / f"chain.{store_type}",
            store_type,
            key_password=KEY_PASSWORD,
        )
    certificates["root"].rename(directory / "ca.pem")
    for file in directory.glob("*.tmp*"):
        file.unlink()


def _first_certificate(file: Path) -> str:
    """The first certificate of a PEM file: keytool of Java 8 writes those of its issuers too."""
    end = "-----END CERTIFICATE-----\n"
    return file.read_text().partition(end)[0] + end


def _make_trust_stores(keytool: Keytool, directory: Path) -> None:
    certificate = directory / "ca.pem"
    # JKS if Java 8 writes it, PKCS12 if Java 9 or later does.
    keytool.trust(directory / "truststore.jks", certificate)
    keytool.trust(directory / "trust.jks", certificate, "-storetype", "jks")
    keytool.trust(directory / "trust.jceks", certificate, "-storetype", "jceks")
    keytool.trust(directory / "trust-legacy.pkcs12", certificate, *_PKCS12, _LEGACY)
    keytool.trust(directory / "trust-unprotected.pkcs12", certificate, *_PKCS12, *_UNPROTECTED)
    keytool.trust(directory / "trust-mac-only.pkcs12", certificate, *_PKCS12, _UNPROTECTED[0])


def _of(store: Path) -> tuple[str | Path, ...]:
    return ("-keystore", store, "-storepass", STORE_PASSWORD, "-alias", "me")


if __name__ == "__main__":
    chosen = sys.argv[3:] or tuple(KEY_ALGORITHMS)
    make_stores(Keytool(Path(sys.argv[1])), Path(sys.argv[2]), chosen)
