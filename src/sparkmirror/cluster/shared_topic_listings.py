"""Listings of topics that connectors of one process share.

After a rebalance dozens of connectors start at once, and each lists all topics of two clusters. A
listing serves every caller that began to wait before its request was sent: a listing of the
caller's own could be no newer than that.

INVARIANT A listing serves only callers that reach the same brokers as the same user: what a user
may not describe is not in it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.describe_topics import TopicListing

_SIZE: Final = 4
_TLS_WITHOUT_LOGIN: Final = "SSL"
"""Here the certificate names the user, and access values with different ones may be equal."""


@dataclass(frozen=True, slots=True)
class _SentListing:
    access: ClusterAccess
    sent_at: float
    listing: TopicListing


class SharedTopicListings:
    """The last listings, the newest one of each cluster and user. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listings: list[_SentListing] = []

    def find(self, access: ClusterAccess, sent_after: float) -> TopicListing | None:
        """Return a listing that was asked for at this time or later; None if there is none."""
        with self._lock:
            for one in self._listings:
                if one.sent_at >= sent_after and is_same_user(one.access, access):
                    return one.listing
        return None

    def add(self, access: ClusterAccess, sent_at: float, listing: TopicListing) -> None:
        """Keep a listing whose request was sent at this time or later."""
        with self._lock:
            others = [one for one in self._listings if not is_same_user(one.access, access)]
            self._listings = [_SentListing(access, sent_at, listing), *others][:_SIZE]


def is_same_user(one: ClusterAccess, other: ClusterAccess) -> bool:
    """Whether both reach the same brokers as the same user. Pure. False in case of doubt."""
    return (
        one.bootstrap_servers == other.bootstrap_servers
        and one.security.protocol != _TLS_WITHOUT_LOGIN
        and one.security == other.security
    )


WORKER_LISTINGS = SharedTopicListings()
"""The listings of all connectors of this process."""
