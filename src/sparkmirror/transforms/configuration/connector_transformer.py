"""The transformer of a connector: its chain, its formats and its tolerance, from its config."""

from __future__ import annotations

from sparkmirror.config.definition.value_types import Props, trim
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.converters.formats import record_converters
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record_transformer import RecordTransformer
from sparkmirror.transforms.static_route import without_routing


def connector_transformer(props: Props, environment: JavaEnvironment) -> RecordTransformer:
    """The transformer that a connector's config declares.

    Raises ConfigError for faults that validation reports, and TransformError for those that Java
    reports when the task starts.
    """
    converters = record_converters(props, environment)
    return RecordTransformer(
        transformation_chain(props, environment),
        converters,
        converters,
        tolerates_errors=tolerates_errors(props),
    )


def record_transformer(props: Props, environment: JavaEnvironment) -> RecordTransformer:
    """The same for records whose topic is known before (`static_route`): routes may be left out."""
    converters = record_converters(props, environment)
    return RecordTransformer(
        without_routing(transformation_chain(props, environment)),
        converters,
        converters,
        tolerates_errors=tolerates_errors(props),
    )


def tolerates_errors(props: Props) -> bool:
    """Whether records that fail are dropped (`errors.tolerance=all`)."""
    return trim(props.get("errors.tolerance") or "none") == "all"
