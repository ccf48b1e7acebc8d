"""Kafka's error codes, and what each asks of whoever copies.

The numbers and names are Kafka's. `Action` is what the copy path and the calls beside it do about
a code; a code that asks for nothing special on that path is FATAL. Knows no connection and decides
nothing itself: whether 45 means "already there" takes more than a code.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final


class Action(Enum):
    """What a code asks for."""

    ADVANCE = "advance"
    """Done. On Produce the base offset must still be the expected one."""
    REFRESH = "refresh"
    """The topic or its leader is elsewhere, or not there yet: look again, re-send in order."""
    COORDINATOR = "coordinator"
    """The coordinator or the controller is elsewhere or busy: find it anew, ask again."""
    BACK_OFF = "back off"
    """Nothing was done; the same request may succeed in a while."""
    AMBIGUOUS = "ambiguous"
    """Done or not, nobody knows: young data is re-sent unchanged, old data is reconciled."""
    SEQUENCE = "sequence"
    """A sequence that does not fit: behind a failed batch, already there, or forgotten."""
    OFFSET = "offset"
    """The offset asked for is not in the log: retention, truncation or a recreated topic."""
    CONTENT = "content"
    """The batch itself is refused: another lane or stop, never the same bytes again."""
    FENCED = "fenced"
    """Somebody else owns this now: stop at once, write nothing more."""
    TRANSACTION = "transaction"
    """The rules of transactions are broken: abort, begin anew once, then fail."""
    NOT_ATTEMPTED = "not attempted"
    """Another partition of the same request was bad: leave that one out, repeat."""
    TOPIC_GONE = "topic gone"
    """No such topic id any more: the topic was deleted or recreated."""
    NOT_AUTHORIZED = "not authorized"
    """A right is missing."""
    UNKNOWN = "unknown"
    """The broker failed in a way it has no code for: try another lane once, then stop."""
    FATAL = "fatal"
    """Not a thing to be healed by trying again."""


class Code(IntEnum):
    """An error code in an answer. A number from the future is a member too, named after itself."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133

    @classmethod
    def _missing_(cls, value: object) -> Code | None:
        """Keep a code that this program is too old to know."""
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = f"CODE_{value}", value
        return member

    @property
    def action(self) -> Action:
        """What this code asks for."""
        return _ACTIONS.get(self, Action.FATAL)

    @property
    def is_worth_retrying(self) -> bool:
        """Whether a question that changes nothing may be asked again in a moment."""
        return self.action in _PASSING

    @property
    def is_elsewhere(self) -> bool:
        """Whether another broker than the one asked is the right one."""
        return self.action in (Action.REFRESH, Action.COORDINATOR, Action.TOPIC_GONE)

    def __str__(self) -> str:
        return f"{self.name} ({self.value})"


_PASSING: Final = frozenset({Action.REFRESH, Action.COORDINATOR, Action.BACK_OFF, Action.AMBIGUOUS})
_TABLE: Final[dict[Action, tuple[Code, ...]]] = {
    Action.ADVANCE: (Code.NONE,),
    Action.REFRESH: (
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.BROKER_NOT_AVAILABLE,
        Code.REPLICA_NOT_AVAILABLE,
        Code.KAFKA_STORAGE_ERROR,
        Code.LISTENER_NOT_FOUND,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_LEADER_EPOCH,
        Code.OFFSET_NOT_AVAILABLE,
        Code.REBOOTSTRAP_REQUIRED,
    ),
    Action.COORDINATOR: (
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.COORDINATOR_NOT_AVAILABLE,
        Code.NOT_COORDINATOR,
        Code.NOT_CONTROLLER,
        Code.CONCURRENT_TRANSACTIONS,
    ),
    Action.BACK_OFF: (Code.NOT_ENOUGH_REPLICAS, Code.THROTTLING_QUOTA_EXCEEDED),
    Action.AMBIGUOUS: (
        Code.REQUEST_TIMED_OUT,
        Code.NETWORK_EXCEPTION,
        Code.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ),
    Action.SEQUENCE: (
        Code.OUT_OF_ORDER_SEQUENCE_NUMBER,
        Code.DUPLICATE_SEQUENCE_NUMBER,
        Code.UNKNOWN_PRODUCER_ID,
    ),
    Action.OFFSET: (Code.OFFSET_OUT_OF_RANGE,),
    Action.CONTENT: (
        Code.CORRUPT_MESSAGE,
        Code.MESSAGE_TOO_LARGE,
        Code.RECORD_LIST_TOO_LARGE,
        Code.INVALID_TIMESTAMP,
        Code.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        Code.UNSUPPORTED_COMPRESSION_TYPE,
        Code.INVALID_RECORD,
    ),
    Action.FENCED: (Code.INVALID_PRODUCER_EPOCH, Code.PRODUCER_FENCED),
    Action.TRANSACTION: (
        Code.INVALID_TXN_STATE,
        Code.INVALID_PRODUCER_ID_MAPPING,
        Code.TRANSACTION_ABORTABLE,
    ),
    Action.NOT_ATTEMPTED: (Code.OPERATION_NOT_ATTEMPTED,),
    Action.TOPIC_GONE: (Code.UNKNOWN_TOPIC_ID, Code.INCONSISTENT_TOPIC_ID),
    Action.NOT_AUTHORIZED: (
        Code.TOPIC_AUTHORIZATION_FAILED,
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
        # Also the answer to a transactional batch in a request that names no transactional id.
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Code.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        Code.UNSUPPORTED_SASL_MECHANISM,
        Code.ILLEGAL_SASL_STATE,
        Code.SASL_AUTHENTICATION_FAILED,
    ),
    Action.UNKNOWN: (Code.UNKNOWN_SERVER_ERROR,),
}
_ACTIONS: Final = MappingProxyType(
    {code: action for action, codes in _TABLE.items() for code in codes}
)
