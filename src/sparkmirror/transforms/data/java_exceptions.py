"""The exceptions of Java that transformations and converters raise, each as a TransformError."""

from __future__ import annotations

from typing import Final

from sparkmirror.errors import TransformError

_CONNECT: Final = "org.apache.kafka.connect.errors"

CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException"
CONNECT_EXCEPTION: Final = f"{_CONNECT}.ConnectException"


def data_exception(message: str, cause: TransformError | None = None) -> TransformError:
    """Connect's DataException: the data does not fit."""
    return TransformError(f"{_CONNECT}.DataException", message, cause)


def connect_exception(message: str, cause: TransformError | None = None) -> TransformError:
    """Connect's ConnectException."""
    return TransformError(CONNECT_EXCEPTION, message, cause)


def schema_builder_exception(message: str, cause: TransformError | None = None) -> TransformError:
    """Connect's SchemaBuilderException: the schema cannot be built."""
    return TransformError(f"{_CONNECT}.SchemaBuilderException", message, cause)


def config_exception(message: str) -> TransformError:
    """Kafka's ConfigException, for faults that Java finds only when it makes the stages."""
    return TransformError(CONFIG_EXCEPTION, message)


def illegal_argument(message: str) -> TransformError:
    """Java's IllegalArgumentException."""
    return TransformError("java.lang.IllegalArgumentException", message)


def number_format_exception(message: str) -> TransformError:
    """Java's NumberFormatException."""
    return TransformError("java.lang.NumberFormatException", message)


def parse_exception(message: str) -> TransformError:
    """Java's ParseException, of texts that are no dates."""
    return TransformError("java.text.ParseException", message)


def null_pointer_exception(message: str) -> TransformError:
    """Java's NullPointerException."""
    return TransformError("java.lang.NullPointerException", message)


def class_cast_exception(message: str) -> TransformError:
    """Java's ClassCastException."""
    return TransformError("java.lang.ClassCastException", message)


def index_out_of_bounds(message: str) -> TransformError:
    """Java's IndexOutOfBoundsException."""
    return TransformError("java.lang.IndexOutOfBoundsException", message)
