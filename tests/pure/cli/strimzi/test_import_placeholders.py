"""Placeholders of Strimzi's config providers become those of Kafka, or are listed."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_resources import (
    ImportedMirror,
    import_resources,
)
from sparkmirror.cli.strimzi.resource_to_properties.kubernetes_secret_files import SecretFiles
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.lab.properties_file import format_properties

TEMPLATE: dict[str, Any] = {
    "pod": {
        "affinity": {},
        "volumes": [
            {"name": "v", "secret": {"secretName": "mounted"}},
            {"name": "w", "configMap": {"name": "map", "items": [{"key": "k", "path": "p.conf"}]}},
            {"name": "unused", "emptyDir": {}},
        ],
    },
    "connectContainer": {
        "volumeMounts": [
            {"name": "v", "mountPath": "/mnt/v"},
            {"name": "w", "mountPath": "/mnt/w/"},
        ],
        "env": [
            {"name": "FROM_SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "PLAIN", "value": "x"},
            {"name": "UNUSED", "value": "y"},
        ],
    },
}
EXTERNAL: dict[str, Any] = {
    "env": [{"name": "OLD", "valueFrom": {"configMapKeyRef": {"name": "map", "key": "k"}}}],
    "volumes": [{"name": "old", "secret": {"secretName": "external"}}],
}


def imported(value: str, target_config: dict[str, Any] | None = None) -> ImportedMirror:
    """Import a mirror with a value in the config of its source connector."""
    resource = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "m"},
        "spec": {
            "target": {"alias": "t", "bootstrapServers": "t:9092", "config": target_config or {}},
            "mirrors": [
                {
                    "source": {"alias": "s", "bootstrapServers": "s:9092"},
                    "sourceConnector": {"config": {"some.key": value}},
                }
            ],
            "template": TEMPLATE,
            "externalConfiguration": EXTERNAL,
        },
    }
    return import_resources([resource], SecretFiles(directory="/etc/secrets"), "m.yaml")


@pytest.mark.parametrize(
    ("written", "made", "providers"),
    [
        ("${strimzisecrets:ns/one:k}", "${dir:/etc/secrets/one:k}", "dir"),
        ("${strimzienv:FROM_SECRET}", "${dir:/etc/secrets/s:k}", "dir"),
        ("${strimzienv:OLD}", "${dir:/etc/secrets/map:k}", "dir"),
        ("${strimzienv:PLAIN}/x", "${env:PLAIN}/x", "env"),
        ("${strimzidir:/mnt/v:k}", "${dir:/etc/secrets/mounted:k}", "dir"),
        ("${strimzidir:/mnt/w:p.conf}", "${dir:/etc/secrets/map:k}", "dir"),
        ("${strimzidir:/opt/kafka/init:rack.id}", "${dir:/opt/kafka/init:rack.id}", "dir"),
        ("${strimzifile:/mnt/v/f.properties:k}", "${file:/etc/secrets/mounted/f.properties:k}",
         "file"),
        ("${strimzifile:/opt/f.properties:k}", "${file:/opt/f.properties:k}", "file"),
        ("${file:/opt/kafka/external-configuration/old/f:k}", "${file:/etc/secrets/external/f:k}",
         "file"),
        ("${env:PLAIN} ${strimzisecrets:ns/one:k}", "${env:PLAIN} ${dir:/etc/secrets/one:k}",
         "dir,env"),
    ],
)  # fmt: skip
def test_placeholder_is_one_that_the_process_can_fetch(
    written: str, made: str, providers: str
) -> None:
    found = imported(written).properties
    assert found["s->t.some.key"] == made
    assert found["config.providers"] == providers
    config = MirrorMakerConfig.open(
        parse_properties(format_properties(found).encode(), file="mm2.properties"), {}
    )
    assert {*config.providers} == {*providers.split(",")}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("${strimzienv:PLAIN}", "give the process the variable PLAIN of the pods"),
        ("${strimzidir:/opt/kafka/init:rack.id}", "/opt/kafka/init must be there"),
        ("${strimzifile:/opt/f.properties:k}", "/opt/f.properties must be there"),
        ("${configmaps:ns/map:k}", "mount the ConfigMap map as /etc/secrets/map"),
        ("${vault:path:k}", "${vault:path:k} stays as text"),
    ],
)
def test_what_else_the_process_needs_is_listed(written: str, text: str) -> None:
    remarks = [one for one in imported(written).remarks if "config.some.key" in one.field]
    assert [one.text.startswith(text) for one in remarks] == [True]


def test_provider_that_the_target_declares_is_known_by_its_class() -> None:
    declared = {
        "config.providers": "mine,other",
        "config.providers.mine.class": "io.strimzi.kafka.KubernetesSecretConfigProvider",
        "config.providers.other.class": "com.example.Vault",
        "config.providers.other.param.url": "https://vault",
    }
    found = imported("${mine:ns/one:k} ${other:a:b}", declared)
    assert found.properties["s->t.some.key"] == "${dir:/etc/secrets/one:k} ${other:a:b}"
    assert not [key for key in found.properties if key.startswith("t.config.providers")]
    fields = [remark.field for remark in found.remarks]
    assert "spec.target.config.config.providers.other.param.url" in fields
    assert "spec.target.config.config.providers.other.class" in fields
    assert "spec.mirrors[0].sourceConnector.config.some.key" in fields


def test_variables_and_volumes_without_a_placeholder_belong_to_the_pod() -> None:
    fields = [remark.field for remark in imported("${strimzidir:/mnt/v:k}").remarks]
    assert [field for field in fields if field.startswith(("spec.template", "spec.external"))] == [
        "spec.template.pod.affinity",
        "spec.externalConfiguration.volumes[0]",
        "spec.template.pod.volumes[1]",
        "spec.externalConfiguration.env[0]",
        "spec.template.connectContainer.env[0]",
        "spec.template.connectContainer.env[1]",
        "spec.template.connectContainer.env[2]",
    ]
