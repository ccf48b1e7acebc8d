"""The properties of a cluster as a cluster of a KafkaMirrorMaker2, without any secret. Pure.

Invariant: each setting of the cluster is in the fields, or in a remark with the key of the file.
"""

from __future__ import annotations

from typing import Any, Final

from sparkmirror.cli.strimzi.kubernetes_secret_key import SecretKey
from sparkmirror.cli.strimzi.properties_to_resource.cluster_authentication import (
    ClusterAuthentication,
)
from sparkmirror.cli.strimzi.properties_to_resource.cluster_settings import (
    ClusterSettings,
    WrittenSetting,
)
from sparkmirror.cli.strimzi.properties_to_resource.pod_variables import PodVariables
from sparkmirror.config.secrets.variables import find_variables, has_only_variables

GROUP_AND_TOPICS: Final = frozenset(
    {"group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic"}
)
CLIENT_PREFIXES: Final = ("admin.", "consumer.", "producer.")
_TRUST_STORE: Final = "ssl.truststore."
_ALLOWED_KEYS: Final = frozenset(
    {
        *("ssl.endpoint.identification.algorithm", "ssl.cipher.suites"),
        *("ssl.protocol", "ssl.enabled.protocols"),
    }
)
"""Keys of TLS that Strimzi accepts in `config`."""
_REFUSED_PREFIXES: Final = (
    *("ssl.", "sasl.", "security.", "listeners", "rest.", "plugin.path", "bootstrap.servers"),
    *("consumer.interceptor.classes", "producer.interceptor.classes"),
)
"""What Strimzi refuses in `config`."""
_PROTOCOLS: Final = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})
_PEM: Final = "PEM"


class ClusterFields:
    """Makes the fields of one cluster."""

    def __init__(self, settings: ClusterSettings, pod: PodVariables) -> None:
        self._settings = settings
        self._pod = pod

    def fields(self) -> dict[str, Any]:
        """Return alias, servers, TLS, login and config."""
        settings = self._settings
        protocol = settings.take_word("security.protocol", "PLAINTEXT", _PROTOCOLS)
        servers = settings.take("bootstrap.servers")
        fields: dict[str, Any] = {
            "alias": settings.alias,
            "bootstrapServers": "" if servers is None else self._pod.translated(*servers),
        }
        if servers is None:
            key = f"{settings.alias}.bootstrap.servers"
            settings.remark(WrittenSetting("", key), "is missing: Strimzi refuses the resource")
        has_tls = protocol in {"SSL", "SASL_SSL"}
        if has_tls:
            fields["tls"] = {"trustedCertificates": self._trusted_certificates()}
        login = ClusterAuthentication(settings, self._pod)
        authentication = None
        if protocol.startswith("SASL_"):
            authentication = login.sasl()
        elif has_tls:
            authentication = login.client_certificate()
        if authentication:
            fields["authentication"] = authentication
        if config := self._config(protocol):
            fields["config"] = config
        return fields

    def _trusted_certificates(self) -> list[dict[str, str]]:
        settings = self._settings
        store = settings.take_all(_TRUST_STORE)
        kind = store.get(f"{_TRUST_STORE}type")
        location = store.get(f"{_TRUST_STORE}location")
        text = store.get(f"{_TRUST_STORE}certificates")
        first = text or location
        found: list[SecretKey | None] = []
        if text is not None and has_only_variables(text.value):
            found = [self._pod.secrets.key_of(v, text.origin) for v in find_variables(text.value)]
        elif first is location and location and kind and kind.value.strip().upper() == _PEM:
            found = [self._pod.secrets.key_of_file(location.value)]
        keys = [key for key in found if key is not None]
        effect = "has no effect without a trust store"
        if keys and len(keys) == len(found):
            effect = "has no effect beside the trusted certificates"
            if kind is not None and kind.value.strip().upper() == _PEM:
                del store[f"{_TRUST_STORE}type"]
        elif first is not None:
            what = "the certificates of this store in PEM"
            made = self._pod.secrets.created(settings.alias, "ca", "ca.crt", what, first.origin)
            keys = [made]
            effect = f"the Secret {made.secret} replaces it"
        for other in store.values():
            if other is not first:
                settings.remark(other, effect)
        return [{"secretName": key.secret, "certificate": key.key} for key in keys]

    def _config(self, protocol: str) -> dict[str, str]:
        """Return what is left, except for what Strimzi does not read here."""
        settings = self._settings
        config = {}
        for key, setting in settings.take_all("").items():
            if key in GROUP_AND_TOPICS:
                settings.remark(setting, "Strimzi's workers have a group and topics of their own")
            elif key in _ALLOWED_KEYS or not key.startswith(_REFUSED_PREFIXES):
                config[key] = self._pod.text(
                    key, setting.value, settings.alias, "config", setting.origin
                )
            elif key.startswith(("ssl.", "sasl.")):
                text = f"Strimzi has no field for it with security.protocol {protocol}"
                settings.remark(setting, text)
            else:
                settings.remark(setting, "Strimzi refuses this key")
        return config
