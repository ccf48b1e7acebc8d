"""A Kerberos KDC of MIT on the loopback address: Debian's krb5-kdc and krb5-admin-server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkmirror.lab.processes.port_registry import HOST
from tests.support.waiting import wait_until

REALM = "LAB.TEST"
_SEARCH_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


def missing_programs() -> list[str]:
    """Return the programs of a KDC that this computer lacks."""
    return [name for name in _PROGRAMS if shutil.which(name, path=_SEARCH_PATH) is None]


@dataclass(frozen=True, slots=True)
class Kdc:
    """A running KDC with an empty realm. Created by `running_kdc`."""

    directory: Path

    @property
    def krb5_conf(self) -> Path:
        """The configuration of clients and brokers: KRB5_CONFIG, or `java.security.krb5.conf`."""
        return self.directory / "krb5.conf"

    def environment(self) -> dict[str, str]:
        """Return the environment of programs that use this KDC."""
        return {
            **os.environ,
            "PATH": _SEARCH_PATH,
            "KRB5_CONFIG": str(self.krb5_conf),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
        }

    def add_principal(self, name: str) -> Path:
        """Add a principal with a random key; return its keytab."""
        keytab = self.directory / f"{name.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {name}@{REALM}")
        self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {keytab} {name}@{REALM}")
        assert keytab.exists()
        return keytab

    def remove_principal(self, name: str) -> None:
        """Remove a principal: the KDC gives it no ticket any more."""
        self.run("kadmin.local", "-r", REALM, "-q", f"delprinc -force {name}@{REALM}")

    def run(self, *command: str) -> str:
        """Run a program of Kerberos; return its output. Raises AssertionError if it fails."""
        done = subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def running_kdc(directory: Path, port: int) -> Iterator[Kdc]:
    """Run a KDC in the block. `directory` must not exist; the port must be free."""
    directory.mkdir()
    kdc = Kdc(directory)
    kdc.krb5_conf.write_text(_KRB5_CONF.format(realm=REALM, host=HOST, port=port))
    (directory / "kdc.conf").write_text(
        _KDC_CONF.format(realm=REALM, host=HOST, port=port, directory=directory)
    )
    kdc.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
    with (directory / "kdc.log").open("wb") as log:
        process = subprocess.Popen(
            ["krb5kdc", "-n", "-r", REALM], env=kdc.environment(), stdout=log, stderr=log
        )
    try:
        keytab = kdc.add_principal("probe")
        cache = f"FILE:{directory / 'probe.cache'}"
        wait_until(
            lambda: _can_log_in(kdc, process, keytab, cache), "the KDC to answer", timeout_s=60
        )
        yield kdc
    finally:
        process.terminate()
        process.wait()


def _can_log_in(kdc: Kdc, process: subprocess.Popen[bytes], keytab: Path, cache: str) -> bool:
    assert process.poll() is None, (kdc.directory / "kdc.log").read_text()
    done = subprocess.run(
        ["kinit", "-c", cache, "-k", "-t", str(keytab), f"probe@{REALM}"],
        env=kdc.environment(),
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


_KRB5_CONF = """\
[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    udp_preference_limit = 1
    ticket_lifetime = 1h
[realms]
    {realm} = {{
        kdc = {host}:{port}
    }}
[domain_realm]
    {host} = {realm}
    localhost = {realm}
"""
_KDC_CONF = """\
[kdcdefaults]
    kdc_listen = {host}:{port}
    kdc_tcp_listen = {host}:{port}
[realms]
    {realm} = {{
        database_name = {directory}/principal
        key_stash_file = {directory}/stash
        acl_file = {directory}/kadm5.acl
        max_life = 1h
    }}
[logging]
    kdc = FILE:{directory}/kdc.log
"""
