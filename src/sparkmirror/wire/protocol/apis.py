"""Requests and responses with kafka-python's message classes: all APIs but Fetch and Produce.

An Api has a request class, its response class, and the versions that were tested on brokers from
2.1 on. Older versions are those of services that are not Apache Kafka: Event Hubs has Metadata up
to 5 and had FindCoordinator up to 1. Only this module encodes and decodes the message classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from sparkmirror.wire.net.buffer_pool import ResponseFrame
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.kafka_python_messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from sparkmirror.wire.protocol.request import ClientRequest


class RequestMessage(Protocol):
    """A request message of kafka-python, as far as it is used here."""

    API_KEY: int

    def encode(self, version: int | None = None) -> bytes:
        """Encode the body."""

    @classmethod
    def flexible_version_q(cls, version: int) -> bool:
        """Whether a version is flexible (KIP-482)."""


class ResponseMessage(Protocol):
    """A response message of kafka-python, as far as it is used here."""

    @classmethod
    def decode(cls, data: memoryview, version: int | None = None) -> Any:
        """Decode the body into an instance of the class."""


Q = TypeVar("Q", bound=RequestMessage)
A = TypeVar("A", bound=ResponseMessage)


@dataclass(frozen=True, slots=True, eq=False)
class Api(Generic[Q, A]):
    """One API: its message classes and the versions used here."""

    request_type: type[Q]
    response_type: type[A]
    versions: Sequence[int]

    @property
    def name(self) -> str:
        """Kafka's name of the API."""
        return self.request_type.__name__.removesuffix("Request")

    def require_support(self, versions: NodeApiVersions) -> None:
        """Raise UnsupportedByBroker if no version of this Api can be used."""
        versions.latest_usable_version(self.name, self.request_type.API_KEY, self.versions)

    def build_request(
        self, message: Q, versions: NodeApiVersions, allowed: Sequence[int] | None = None
    ) -> ClientRequest[A]:
        """Build a request in the highest version that the broker supports too.

        `allowed` replaces the versions of this Api. A message belongs to one request: kafka-python
        keeps the version in it.
        """
        version = versions.latest_usable_version(
            self.name, message.API_KEY, allowed or self.versions
        )
        return self.build_request_at(message, version)

    def build_request_at(self, message: Q, version: int) -> ClientRequest[A]:
        """Build a request in a given version."""

        def read(frame: ResponseFrame, at: int) -> A:
            answer: A = self.response_type.decode(frame.view[at:], version=version)
            return answer

        return ClientRequest(
            name=self.name,
            api_key=message.API_KEY,
            version=version,
            flexible=message.flexible_version_q(version),
            body=(message.encode(version=version),),
            decode=read,
        )


API_VERSIONS = Api(ApiVersionsRequest, ApiVersionsResponse, range(5))
SASL_HANDSHAKE = Api(SaslHandshakeRequest, SaslHandshakeResponse, (1,))
SASL_AUTHENTICATE = Api(SaslAuthenticateRequest, SaslAuthenticateResponse, range(3))
METADATA = Api(MetadataRequest, MetadataResponse, (5, *range(7, 14)))
FIND_COORDINATOR = Api(FindCoordinatorRequest, FindCoordinatorResponse, range(1, 5))
LIST_OFFSETS = Api(ListOffsetsRequest, ListOffsetsResponse, range(4, 8))
OFFSET_FOR_LEADER_EPOCH = Api(
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, range(2, 5)
)
INIT_PRODUCER_ID = Api(InitProducerIdRequest, InitProducerIdResponse, range(1, 6))
ADD_PARTITIONS_TO_TXN = Api(AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, range(1, 4))
END_TXN = Api(EndTxnRequest, EndTxnResponse, range(1, 6))
DESCRIBE_PRODUCERS = Api(DescribeProducersRequest, DescribeProducersResponse, (0,))
DESCRIBE_TRANSACTIONS = Api(DescribeTransactionsRequest, DescribeTransactionsResponse, (0,))
LIST_TRANSACTIONS = Api(ListTransactionsRequest, ListTransactionsResponse, range(3))
DESCRIBE_CONFIGS = Api(DescribeConfigsRequest, DescribeConfigsResponse, range(2, 5))
