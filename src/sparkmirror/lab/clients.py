"""How clients reach a cluster of the lab: addresses, and settings in Java's names.

The same settings serve Kafka's own tools, an mm2.properties and our own clients.
"""

from __future__ import annotations

from sparkmirror.cluster.access import Access
from sparkmirror.errors import NotFound
from sparkmirror.lab.certificates import Authority
from sparkmirror.lab.credentials import DEFAULT_MECHANISM, login
from sparkmirror.lab.description import Description
from sparkmirror.lab.layout import CONTROL, inter_broker_listener
from sparkmirror.lab.spec import CONTROL_USER, Listener


class Clients:
    """The doors of one cluster and their keys."""

    def __init__(self, described: Description, authority: Authority) -> None:
        self._described = described
        self._authority = authority

    def bootstrap(self, listener: str) -> str:
        """Name every broker's address on a listener, as `bootstrap.servers` wants them."""
        return ",".join(str(node.address(listener)) for node in self._described.nodes)

    def properties(
        self, listener: Listener, user: str | None = None, mechanism: str = DEFAULT_MECHANISM
    ) -> dict[str, str]:
        """Say how a user gets in; the first user if none is named."""
        properties = {
            "bootstrap.servers": self.bootstrap(listener),
            "security.protocol": listener.value,
        }
        if listener.has_tls:
            properties["ssl.truststore.type"] = "PEM"
            properties["ssl.truststore.location"] = str(self._authority.trust)
        if listener == Listener.SSL and self._described.spec.mutual_tls:
            properties["ssl.keystore.type"] = "PEM"
            properties["ssl.keystore.location"] = str(
                self._authority.identity(self._known_user(user))
            )
        if listener.has_users:
            known = self._known_user(user)
            properties |= login(mechanism, known, self._described.spec.users[known])
        return properties

    def access(
        self, listener: str, user: str | None = None, mechanism: str = DEFAULT_MECHANISM
    ) -> Access:
        """Say the same to our own clients; also for the lab's own listener."""
        name = self._described.spec.name
        if listener == CONTROL:
            return Access.from_properties(name, self._control_properties())
        return Access.from_properties(name, self.properties(Listener(listener), user, mechanism))

    def own_access(self) -> Access:
        """Get the lab in, where it may do everything."""
        return self.access(inter_broker_listener(self._described.spec))

    def _control_properties(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap(CONTROL),
            "security.protocol": "SASL_PLAINTEXT",
            **login("PLAIN", CONTROL_USER, self._described.control_password),
        }

    def _known_user(self, user: str | None) -> str:
        users = self._described.spec.users
        chosen = next(iter(users)) if user is None else user
        if chosen not in users:
            raise NotFound(
                f"Cluster {self._described.spec.name} has no user {chosen!r}:"
                f" its users are {', '.join(users)}."
            )
        return chosen
