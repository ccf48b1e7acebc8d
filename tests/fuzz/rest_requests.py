"""Requests that schemathesis makes of /openapi.json, against a REST server on a real herder.

The herder runs on stores in memory with fake connectors. Half of the requests name connectors,
plug-ins and loggers that exist. Every answer must be one that the description has: its status, and
its body by the schema. A 5xx is a fault unless the operation describes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok

from sparkmirror.rest.http.listener import RestListener
from sparkmirror.rest.server import RestServer
from sparkmirror.rest.server_options import RestOptions
from sparkmirror.worker.connector_progress import WorkerMonitor
from tests.support.connect.in_memory_herder import (
    HEARTBEAT_CONFIG,
    SOURCE_CONFIG,
    named_config,
    running_herder,
)
from tests.support.rest.rest_client import RestClient

EXISTING: Mapping[str, list[str]] = {
    "connector": ["source", "heartbeat", "a name/with % and ü"],
    "plugin": ["MirrorSourceConnector", "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"],
    "logger": ["root", "org.apache.kafka.connect"],
    "task": ["0", "1"],
}
FOR_ANY_REQUEST = {400, 405, 406, 413, 415}
"""Errors of the path, the method, the media types and the size. None is a 5xx."""
REQUEST_TIMEOUT_S = 50.0


@contextmanager
def rest_server() -> Iterator[str]:
    """A REST server with three connectors; yields its address."""
    with running_herder() as harness:
        for name in EXISTING["connector"]:
            config = SOURCE_CONFIG if name == "source" else HEARTBEAT_CONFIG
            harness.herder.put_connector_config(name, named_config(name, config))
        server = RestServer(
            harness.herder,
            [RestListener.parse("http://127.0.0.1:0")],
            RestOptions(access_log=False),
            WorkerMonitor(),
        )
        server.start()
        try:
            yield server.address
        finally:
            server.stop(1.0)


def send_requests(count: int, seed_number: int) -> Counter[str]:
    """Send so many requests; return how many of each operation and status there were."""
    answers: Counter[str] = Counter()
    with rest_server() as address:
        client = RestClient(address)
        document = client.request("GET", "/openapi.json").json
        client.close()

        @seed(seed_number)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(_cases(document), st.data())
        def send(case: Case[Any], data: st.DataObject) -> None:
            _name_existing(case, data)
            response = case.call(base_url=address, timeout=REQUEST_TIMEOUT_S)
            check_answer(document, case, response)
            answers[f"{case.operation.label} {response.status_code}"] += 1

        send()
    return answers


def _cases(document: Any) -> st.SearchStrategy[Case[Any]]:
    schema = schemathesis.openapi.from_dict(document)
    operations = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    assert len(operations) == sum(map(len, document["paths"].values()))
    return st.one_of(
        *(
            operation.as_strategy(generation_mode=mode)
            for operation in operations
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
        )
    )


def _name_existing(case: Case[Any], data: st.DataObject) -> None:
    removes_connector = case.operation.label == "DELETE /connectors/{connector}"
    for name in case.path_parameters or {}:
        if not removes_connector and data.draw(st.booleans()):
            existing = data.draw(st.sampled_from(EXISTING[name]))
            case.path_parameters[name] = quote(existing, safe="")


def check_answer(document: Any, case: Case[Any], response: Any) -> None:
    """Assert that the description has the answer."""
    operation = document["paths"][case.operation.path][case.operation.method.lower()]
    status, responses = response.status_code, operation["responses"]
    what = f"{case.operation.label} answers {status}: {response.content[:200]!r}"
    assert str(status) in responses or status in FOR_ANY_REQUEST, what
    described = responses.get(str(status), responses["default"])
    content = described.get("content", {}).get("application/json")
    if content is None:
        assert not response.content, what
    elif response.request.method != "HEAD":
        schema = {**content["schema"], "components": document["components"]}
        jsonschema_rs.validate(schema, response.json())
