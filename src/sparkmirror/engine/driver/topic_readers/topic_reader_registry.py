"""The shared topic readers of this process, by client and topic."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial

from sparkmirror.engine.driver.topic_readers.shared_topic_reader import (
    Collapse,
    KeyFilter,
    SharedTopicReader,
    TopicSubscription,
)
from sparkmirror.wire.net.routing import Router


class TopicReaderRegistry:
    """Gives stores of equal clients one reader of a topic. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[Hashable, SharedTopicReader] = {}

    def subscribe(
        self,
        client: Hashable,
        topic: str,
        create_router: Callable[[], Router],
        router: Router,
        is_wanted: KeyFilter,
        collapse: Collapse,
    ) -> TopicSubscription:
        """Return a subscription to a topic. Stores with equal `client`s share a reader.

        `create_router` makes the router of the reader, `router` is that of the store.
        """
        key = (client, topic)
        with self._lock:
            shared = self._readers.get(key)
            subscription = shared.subscribe(router, is_wanted, collapse) if shared else None
            if subscription is None:
                shared = SharedTopicReader(create_router(), topic, partial(self._remove, key))
                subscription = shared.subscribe(router, is_wanted, collapse)
                shared.start()
                self._readers[key] = shared
            assert subscription is not None, "a new reader accepts subscriptions"
            return subscription

    def _remove(self, key: Hashable, ended: SharedTopicReader) -> None:
        with self._lock:
            if self._readers.get(key) is ended:
                del self._readers[key]


PROCESS_READERS = TopicReaderRegistry()
"""The readers that all conductors of this process share."""
