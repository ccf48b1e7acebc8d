"""Files that tutorials print."""

from __future__ import annotations

QUICKSTART_WORKER_FILE = """\
group.id="quickstart"
status.storage.replication.factor=1
key.converter=org.apache.kafka.connect.converters.ByteArrayConverter
config.storage.topic=quickstart_config
offset.storage.replication.factor=1
plugin.path=/usr/share/java/,/usr/share/confluent-hub-components/
offset.storage.topic=quickstart_offsets
bootstrap.servers=broker:29092
value.converter=org.apache.kafka.connect.converters.ByteArrayConverter
rest.advertised.host.name="localhost"
rest.port=28082
status.storage.topic=quickstart_status
connector.client.config.override.policy=All
config.storage.replication.factor=1
"""
"""The file as the tutorial prints it. Confluent's image keeps no order of lines."""
