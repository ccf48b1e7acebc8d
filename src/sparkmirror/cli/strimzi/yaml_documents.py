"""YAML as Kubernetes has it. The only module that imports PyYAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from sparkmirror.config.files.properties import read_bytes
from sparkmirror.errors import PropertiesError


class _KubernetesLoader(yaml.SafeLoader):
    """Refuses a field that is there twice, as Kubernetes does. YAML would drop the first one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping. Raises MarkedYAMLError with the line of the second field."""
        names = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in names:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the field {key.value} is there twice", problem_mark=key.start_mark
                    )
                names.add(key.value)
        return super().construct_mapping(node, deep)


def load_documents(path: Path) -> list[Any]:
    """Return the documents of a file that are not empty. Raises PropertiesError with the line."""
    try:
        documents = list(yaml.load_all(read_bytes(path), _KubernetesLoader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise PropertiesError(str(path), line, f"is not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise PropertiesError(str(path), None, f"is not valid YAML: {error}") from None
    return [document for document in documents if document is not None]


def documents_text(documents: Sequence[Any]) -> str:
    """Return the documents as a YAML stream, with the fields in the given order."""
    return yaml.safe_dump_all(
        documents, sort_keys=False, explicit_start=len(documents) > 1, width=120
    )
