"""Which client settings a connector may override: the worker's override policy.

Checks `producer.override.*` only, as Connect does for source connectors: the producer is the only
client that a worker creates for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from sparkmirror.config.definition.config_def import ConfigValue
from sparkmirror.config.definition.value_types import Props
from sparkmirror.errors import ConfigFault

PRODUCER_OVERRIDE_PREFIX: Final = "producer.override."

OVERRIDE_POLICY_KEY: Final = "connector.client.config.override.policy"
OVERRIDE_POLICIES: Final = ("All", "Allowlist", "None", "Principal")

_PACKAGE: Final = "org.apache.kafka.connect.connector.policy."
_SUFFIX: Final = "ConnectorClientConfigOverridePolicy"
_CREDENTIALS: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


def policy_short_name(policy: str) -> str:
    """The short name of a policy that is given by name or class."""
    return policy.removeprefix(_PACKAGE).removesuffix(_SUFFIX)


def policy_faults(policy: str) -> Iterator[ConfigFault]:
    """Yield a fault for an unknown policy: a worker does not start with it."""
    if policy_short_name(policy) not in OVERRIDE_POLICIES:
        available = ", ".join(OVERRIDE_POLICIES)
        yield ConfigFault(
            OVERRIDE_POLICY_KEY,
            f"Failed to find any class that implements interface {_PACKAGE}{_SUFFIX} and which "
            f"name matches {policy}, available are: {available}",
        )


def disallowed_overrides(
    props: Props, policy: str, allowlist: Collection[str]
) -> Iterator[ConfigValue]:
    """Yield the overrides that the policy forbids, each with its error."""
    name = policy_short_name(policy)
    allows: dict[str, Callable[[str], bool]] = {
        "All": lambda _: True,
        "None": lambda _: False,
        "Principal": _CREDENTIALS.__contains__,
        "Allowlist": allowlist.__contains__,
    }
    is_allowed = allows.get(name, allows["None"])
    for key, value in props.items():
        setting = key.removeprefix(PRODUCER_OVERRIDE_PREFIX)
        if setting != key and setting and not is_allowed(setting):
            error = (
                f"The '{name}' policy does not allow '{setting}' to be overridden in the "
                "connector configuration."
            )
            yield ConfigValue(name=key, value=value, errors=(error,))
