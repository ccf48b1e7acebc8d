"""Client settings for a cluster of the lab, with Kafka's property names.

Kafka's tools, an mm2.properties and sparkmirror's own clients use the same settings.
"""

from __future__ import annotations

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.errors import NotFound
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster_description import ClusterDescription
from sparkmirror.lab.cluster.cluster_spec import CONTROL_USER, ListenerProtocol
from sparkmirror.lab.cluster.node_listeners import CONTROL_LISTENER, inter_broker_listener
from sparkmirror.lab.cluster.sasl_config import (
    DEFAULT_MECHANISM,
    OAUTHBEARER,
    oauth_client_properties,
    sasl_client_properties,
)


class ClientSettings:
    """The client settings for each listener and user of one cluster."""

    def __init__(self, description: ClusterDescription, authority: CertificateAuthority) -> None:
        self._description = description
        self._authority = authority

    def bootstrap_servers(self, listener: str) -> str:
        """Return `bootstrap.servers` with the address of every broker on a listener."""
        return ",".join(str(node.address(listener)) for node in self._description.nodes)

    def properties(
        self,
        listener: ListenerProtocol,
        user: str | None = None,
        mechanism: str = DEFAULT_MECHANISM,
    ) -> dict[str, str]:
        """Return the properties with which a user connects; the first user if none is named.

        Raises NotFound if the cluster has no such user.
        """
        properties = {
            "bootstrap.servers": self.bootstrap_servers(listener),
            "security.protocol": listener.security_protocol,
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
            properties |= self._sasl_properties(self._resolve_user(user), mechanism)
        return properties

    def _sasl_properties(self, user: str, mechanism: str) -> dict[str, str]:
        spec = self._description.spec
        if mechanism == OAUTHBEARER and spec.oauth is not None:
            return oauth_client_properties(spec.oauth, user, spec.users[user])
        return sasl_client_properties(mechanism, user, spec.users[user])

    def access(
        self, listener: str, user: str | None = None, mechanism: str = DEFAULT_MECHANISM
    ) -> ClusterAccess:
        """Return the same for sparkmirror's own clients; also for CONTROL and proxied listeners."""
        name = self._description.spec.name
        if listener in self._description.spec.proxied_listeners:
            bootstrap = {"bootstrap.servers": self.bootstrap_servers(listener)}
            return ClusterAccess.from_properties(name, bootstrap)
        if listener == CONTROL_LISTENER:
            return ClusterAccess.from_properties(name, self._control_properties())
        return ClusterAccess.from_properties(
            name, self.properties(ListenerProtocol(listener), user, mechanism)
        )

    def admin_access(self) -> ClusterAccess:
        """Return the access with which the lab administers the cluster, with all rights."""
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
