"""The layers of a client give the properties that the client gets, with their origins."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config.client_configs import (
    ClientType,
    ClusterSide,
    ConnectorClient,
    client_properties,
    worker_producer_config,
)
from sparkmirror.config.files.client_config_origins import client_layers, worker_producer_layers
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties

PREFIXES = (
    "", "A.", "B.", "A.consumer.", "B.producer.", "A->B.consumer.", "A->B.source.consumer.",
    "A->B.source.cluster.", "A->B.target.producer.", "A->B.producer.override.", "A->B.producer.",
)  # fmt: skip
NAMES = ("security.protocol", "acks", "max.poll.records", "auto.offset.reset", "enable.auto.commit")
KEYS = st.builds(lambda p, n: p + n, st.sampled_from(PREFIXES), st.sampled_from(NAMES))


@given(st.dictionaries(KEYS, st.sampled_from(["1", "2"]), max_size=12))
@settings(max_examples=60, deadline=None)
def test_layers_of_a_client_give_the_properties_of_the_client(lines: dict[str, str]) -> None:
    text = "clusters=A,B\nB.bootstrap.servers=b:1\n" + "".join(
        f"{key}={value}\n" for key, value in lines.items()
    )
    file = parse_properties(text.encode(), file="mm2.properties")
    config = MirrorMakerConfig.open(file, {})
    flow = config.cluster_pairs[0]
    connector = config.layered_connector_config(flow, MirrorConnector.SOURCE)
    for side in ClusterSide:
        for client_type in ClientType:
            client = ConnectorClient(side, client_type)
            expected = client_properties(connector.props, client)
            assert client_layers(connector, client).props == expected
    worker = config.layered_worker_config(flow)
    expected = worker_producer_config(worker.props, connector.props)
    assert worker_producer_layers(worker, connector).props == expected
