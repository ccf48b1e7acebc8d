"""The data source to register: `spark.dataSource.register(KafkaDataSource)`.

docs/spark.md has its options and two examples.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from sparkmirror.datasource.kafka_readers import KafkaBatchReader, KafkaStreamReader
from sparkmirror.datasource.kafka_rows import SinkColumns, source_schema
from sparkmirror.datasource.kafka_writers import KafkaBatchWriter, KafkaStreamWriter
from sparkmirror.datasource.options import FORMAT, SinkOptions, SourceOptions, includes_headers
from sparkmirror.errors import ConfigError


class KafkaDataSource(DataSource):
    """`format("sparkmirror-kafka")`: records of Kafka as rows, batch and stream, read and write.

    Wrong options and columns raise ConfigError when the query is planned.
    """

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of the source."""
        return source_schema(include_headers=includes_headers(self.options))

    def reader(self, schema: StructType) -> KafkaBatchReader:
        """Return the reader of `spark.read`."""
        self._check(schema)
        return KafkaBatchReader(SourceOptions.for_batch(self.options))

    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of `spark.readStream`."""
        self._check(schema)
        return KafkaStreamReader(SourceOptions.for_stream(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> KafkaBatchWriter:
        """Return the writer of `DataFrame.write`."""
        if overwrite:
            raise ConfigError.of("mode", "a topic cannot be overwritten; use mode('append')")
        options = SinkOptions.from_options(self.options)
        return KafkaBatchWriter(options, SinkColumns.from_schema(schema, options.topic))

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:  # noqa: N802
        """Return the writer of `DataFrame.writeStream`, whatever its output mode."""
        options = SinkOptions.from_options(self.options)
        return KafkaStreamWriter(options, SinkColumns.from_schema(schema, options.topic))

    def _check(self, schema: StructType) -> None:
        """Raise ConfigError if the user has set other columns."""
        if schema.simpleString() != self.schema().simpleString():
            raise ConfigError.of("schema", f"{FORMAT} has columns of its own; remove schema()")
