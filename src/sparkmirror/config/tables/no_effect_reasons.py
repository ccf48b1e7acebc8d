"""Why a key of Kafka has no effect here: the descriptions of such keys."""

from __future__ import annotations

from typing import Final

JAVA_RUNTIME: Final = "No effect here: it chooses a part of a Java runtime."
JAVA_CLIENT: Final = "No effect here: it tunes Kafka's Java clients."
KERBEROS: Final = "No effect here: the Kerberos library renews tickets by itself."
TOKENS: Final = "No effect here: it is for brokers, which check tokens."
ENABLED_PROTOCOLS_DECIDE: Final = "No effect here: ssl.enabled.protocols decides."
JAVA_CLASS: Final = "No effect here: it names a Java class, and none is loaded."
METRICS: Final = "No effect here: there is no JMX; /metrics has the figures."
ONE_VERSION: Final = "No effect here: there is one version of each plug-in."
BYTES: Final = "No effect here: records are copied as bytes, without a converter."
NOT_RETRIED: Final = "No effect here: a transformation that failed is not tried again."
NO_TRANSFORMATIONS: Final = "No effect here: only source connectors apply transformations."
TOPIC_CREATION: Final = "No effect here: a mirror creates its topics after those of the source."
OTHER_GROUP_PROTOCOL: Final = (
    "No effect here: workers of a group have a protocol of their own, which moves only what must."
)
CLIENT_TUNING: Final = (
    "No effect here: it tunes a client of Kafka, and batches are copied as they are."
)
NO_SUCH_CLIENT: Final = "No effect here: this part of the flow has no such client."
