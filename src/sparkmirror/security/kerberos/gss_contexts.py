"""Tickets and security contexts of the system's Kerberos library, through the package `gssapi`.

Only this module loads it. The package is the extra `kerberos`. Each login has a ticket cache of its
own in memory, so two clusters may have two principals. The library renews tickets with the keytab
when they expire.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkmirror.errors import ConfigError
from sparkmirror.security.java_options import system_property
from sparkmirror.security.sasl_credentials import LoginRefused, TokenUnavailable

KRB5_CONFIG = "KRB5_CONFIG"
SYSTEM_CONFIG = "/etc/krb5.conf"
DEFAULTS = Path(__file__).with_name("krb5-defaults.conf")
_KDC_UNREACHABLE = -1765328228
_REALM_UNKNOWN = -1765328230
_WITHOUT_A_KDC = frozenset(code & 0xFFFFFFFF for code in (_KDC_UNREACHABLE, _REALM_UNKNOWN))


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosTickets:
    """Whose tickets a login shows: those of a keytab, or of a ticket cache."""

    service_name: str
    principal: str = ""
    keytab: str = ""
    ticket_cache: str = ""
    """The file of a ticket cache; empty for the default cache of the process."""

    def new_context(self, host: str) -> GssContext:
        """Return a context for one exchange with a broker. May ask the KDC.

        Raises TokenUnavailable if no KDC answers, LoginRefused if the KDC gives no ticket.
        """
        if self.keytab and not os.access(self.keytab, os.R_OK):
            raise LoginRefused(f"the keytab {self.keytab} cannot be read")
        gssapi = _gssapi()
        try:
            target = gssapi.Name(
                f"{self.service_name}@{host}", name_type=gssapi.NameType.hostbased_service
            )
            context = gssapi.SecurityContext(
                name=target,
                creds=self._credentials(),
                usage="initiate",
                mech=gssapi.MechType.kerberos,
                flags=[
                    gssapi.RequirementFlag.mutual_authentication,
                    gssapi.RequirementFlag.integrity,
                ],
            )
        except gssapi.exceptions.GSSError as error:
            raise _translate(error, self.description, self._advice) from None
        return GssContext(context, self.description, self._advice)

    @property
    def description(self) -> str:
        """Whose ticket, and from where."""
        origin = self.keytab or self.ticket_cache or "the default ticket cache"
        return f"Kerberos ticket of {self.principal or 'the principal'} from {origin}"

    @property
    def _advice(self) -> str:
        if self.keytab:
            return "check that the keytab has a key of it, and that the KDC knows the broker"
        return "check with klist that the ticket is there and valid"

    def _credentials(self) -> Any:
        gssapi = _gssapi()
        name = None
        if self.principal:
            name = gssapi.Name(self.principal, name_type=gssapi.NameType.kerberos_principal)
        store: dict[str, str] = {}
        if self.keytab:
            cache = f"MEMORY:sparkmirror-{abs(hash(self)):x}"
            store = {"client_keytab": f"FILE:{self.keytab}", "ccache": cache}
        elif self.ticket_cache:
            store = {"ccache": f"FILE:{self.ticket_cache}"}
        return gssapi.Credentials(name=name, usage="initiate", store=store or None)


class GssContext:
    """One security context of the client side."""

    def __init__(self, context: Any, description: str, advice: str) -> None:
        self._context = context
        self._description = description
        self._advice = advice

    @property
    def is_complete(self) -> bool:
        """Whether both sides have proven who they are."""
        return bool(self._context.complete)

    def step(self, received: bytes | None) -> bytes:
        """Return the next message for the broker; empty if there is none."""
        return bytes(self._call(lambda: self._context.step(received)) or b"")

    def unwrap(self, message: bytes) -> bytes:
        """Return the content of a message of the broker."""
        return bytes(self._call(lambda: self._context.unwrap(message).message))

    def wrap(self, content: bytes) -> bytes:
        """Return a message for the broker, signed and not encrypted."""
        return bytes(self._call(lambda: self._context.wrap(content, False).message))

    def _call(self, step: Any) -> Any:
        try:
            return step()
        except _gssapi().exceptions.GSSError as error:
            raise _translate(error, self._description, self._advice) from None


def _gssapi() -> Any:
    """Return the package. Loaded by name: where it cannot be built, all the rest is checked."""
    return importlib.import_module("gssapi")


def require_gssapi(key: str) -> None:
    """Raise ConfigError if the extra `kerberos` is not installed."""
    if importlib.util.find_spec("gssapi") is None:
        raise ConfigError.of(
            key,
            f"{key}: GSSAPI needs the Kerberos library: pip install sparkmirror[kerberos], which"
            " builds against libkrb5 (Debian: libkrb5-dev), also on the hosts of executors; or"
            " set sasl.mechanism to another mechanism",
        )


def apply_krb5_conf(
    environment: Mapping[str, str], process: MutableMapping[str, str] = os.environ
) -> None:
    """Set KRB5_CONFIG of the process: the operator's file, then our defaults.

    The operator's file is that of KRB5_CONFIG, else that which Java's clients use, else the
    system's.
    """
    java = system_property(environment, "java.security.krb5.conf")
    files = process.get(KRB5_CONFIG) or java or SYSTEM_CONFIG
    if str(DEFAULTS) not in files.split(":"):
        process[KRB5_CONFIG] = f"{files}:{DEFAULTS}"


def _translate(error: Any, description: str, advice: str) -> Exception:
    # The minor code is that of Kerberos, without its sign. The major one says nothing.
    code = int(getattr(error, "min_code", 0)) & 0xFFFFFFFF
    text = " ".join(str(error).split()).rpartition("): ")[2]
    if code in _WITHOUT_A_KDC:
        return TokenUnavailable(f"{description}: {text}; check krb5.conf and the KDC")
    return LoginRefused(f"{description}: {text}; {advice}")
