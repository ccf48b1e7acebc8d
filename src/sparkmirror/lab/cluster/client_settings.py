"""How clients reach a cluster of the lab: addresses, and settings in Java's names.

The same settings serve Kafka's own tools, an mm2.properties and our own clients.
"""

from __future__ import annotations

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import NotFound
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster_description import ClusterDescription
from sparkmirror.lab.cluster.cluster_spec import CONTROL_USER, ListenerProtocol
from sparkmirror.lab.cluster.node_listeners import CONTROL_LISTENER, inter_broker_listener
from sparkmirror.lab.cluster.sasl_config import DEFAULT_MECHANISM, sasl_client_properties


class ClientSettings:
    """The doors of one cluster and their keys."""

    def __init__(self, described: ClusterDescription, authority: CertificateAuthority) -> None:
        self._description = described
        self._authority = authority

    def bootstrap_servers(self, listener: str) -> str:
        """Name every broker's address on a listener, as `bootstrap.servers` wants them."""
        return ",".join(str(node.address(listener)) for node in self._description.nodes)

    def properties(
        self,
        listener: ListenerProtocol,
        user: str | None = None,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> dict[str, str]:
        """Say how a user gets in; the first user if none is named."""
        properties = {
            "bootstrap.servers": self.bootstrap_servers(listener),
            "security.protocol": listener.value,
        }
        if listener.uses_tls:
            properties["ssl.truststore.type"] = "PEM"
            properties["ssl.truststore.location"] = str(self._authority.ca_certificate)
        if listener == ListenerProtocol.SSL and self._description.spec.mutual_tls:
            properties["ssl.keystore.type"] = "PEM"
            properties["ssl.keystore.location"] = str(
                self._authority.key_store(self._resolve_user(user))
            )
        if listener.uses_sasl:
            known = self._resolve_user(user)
            properties |= sasl_client_properties(
                mechanism, known, self._description.spec.users[known]
            )
        return properties

    def access(
        self, listener: str, user: str | None = None, mechanism: str = DEFAULT_MECHANISM
    ) -> ClusterAccess:
        """Say the same to our own clients; also for the lab's own listener."""
        name = self._description.spec.name
        if listener == CONTROL_LISTENER:
            return ClusterAccess.from_properties(name, self._control_properties())
        return ClusterAccess.from_properties(
            name, self.properties(ListenerProtocol(listener), user, mechanism)
        )

    def admin_access(self) -> ClusterAccess:
        """Get the lab in, where it may do everything."""
        return self.access(inter_broker_listener(self._description.spec))

    def _control_properties(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.bootstrap_servers(CONTROL_LISTENER),
            "security.protocol": "SASL_PLAINTEXT",
            **sasl_client_properties("PLAIN", CONTROL_USER, self._description.control_password),
        }

    def _resolve_user(self, user: str | None) -> str:
        users = self._description.spec.users
        chosen = next(iter(users)) if user is None else user
        if chosen not in users:
            raise NotFound(
                f"Cluster {self._description.spec.name} has no user {chosen!r}:"
                f" its users are {', '.join(users)}."
            )
        return chosen
