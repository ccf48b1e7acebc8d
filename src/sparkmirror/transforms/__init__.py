"""Kafka Connect's single message transforms and predicates, by their Java names.

    bytes ──converters──► ConnectRecord ──stages of the chain──► ConnectRecord ──converters──► bytes
                                              │
                                              └─► dropped (Filter), or failed with Java's error

A config is compiled once (`configuration.transformation_stages`); `record_transformer` applies the
compiled chain to records, and `record_parts` says which parts of a record the chain reads and
writes. Each class of `org.apache.kafka.connect.transforms` is in the module of its name: those that
look into keys and values are in `fields`, conditions in `predicates`. `tests/golden/transforms` has
what Java's classes did.

Pure: no socket, no Spark, no clock. A record that fails raises TransformError with Java's class and
message.
"""
