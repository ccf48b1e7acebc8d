"""The versions of requests to brokers from 2.1 on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS
from kafka.protocol.metadata import ApiVersionsResponse

from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.wire.protocol import apis, fetch, produce
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.apis import Api

OFFERED: Mapping[tuple[int, ...], Mapping[int, tuple[int, int]]] = {
    release: ranges for release, ranges in BROKER_API_VERSIONS.items() if release >= (2, 1)
}
APIS: dict[str, Api[Any, Any]] = {
    api.name: api for api in vars(apis).values() if isinstance(api, Api)
}
SINCE = {
    "DescribeProducers": (2, 8),
    "DescribeTransactions": (3, 0),
    "ListTransactions": (3, 0),
}


def release_name(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


@pytest.mark.parametrize("release", OFFERED, ids=release_name)
def test_every_request_has_a_version_that_the_broker_supports(release: tuple[int, ...]) -> None:
    versions = NodeApiVersions(cluster="a", ranges=OFFERED[release])
    for name, api in APIS.items():
        message = api.request_type()
        if release < SINCE.get(name, (0, 0)):
            with pytest.raises(UnsupportedByBroker):
                api.build_request(message, versions)
        else:
            lowest, highest = OFFERED[release][message.API_KEY]
            assert (
                lowest
                <= versions.latest_usable_version(name, message.API_KEY, api.versions)
                <= highest
            )


@pytest.mark.parametrize(
    ("release", "fetched", "produced"),
    [
        ((2, 1), 10, 7),
        ((2, 3), 11, 7),
        ((2, 4), 11, 8),
        ((2, 8), 12, 9),
        ((3, 1), 13, 9),
        ((3, 6), 13, 9),
        ((3, 7), 16, 10),
        ((3, 9), 16, 11),
        ((4, 0), 16, 12),
        ((4, 3), 16, 13),
    ],
    ids=str,
)
def test_topic_ids_are_used_if_the_broker_supports_them(
    release: tuple[int, ...], fetched: int, produced: int
) -> None:
    versions = NodeApiVersions(cluster="a", ranges=OFFERED[release])
    assert fetch.fetch_version(versions, by_id=fetch.supports_topic_ids(versions)) == fetched
    assert produce.produce_version(versions, by_id=produce.supports_topic_ids(versions)) == produced


def test_features_of_the_cluster_are_read() -> None:
    feature = ApiVersionsResponse.FinalizedFeatureKey(
        name="transaction.version", max_version_level=2, min_version_level=0
    )
    answer = ApiVersionsResponse(
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=1, min_version=4, max_version=18)],
        finalized_features=[feature],
    )
    versions = NodeApiVersions.from_response("a", answer)
    assert versions.ranges == {1: (4, 18)}
    assert versions.supports(1)
    assert not versions.supports(61)
    assert versions.transaction_version == 2
    assert NodeApiVersions(cluster="a", ranges={}).transaction_version == 0
