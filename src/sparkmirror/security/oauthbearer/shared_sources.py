"""One token source per login settings and process: clients with equal settings share a token."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping

from sparkmirror.security.oauthbearer.refresh_schedule import RefreshSchedule
from sparkmirror.security.oauthbearer.refreshing_tokens import RefreshingTokens
from sparkmirror.security.oauthbearer.token_retriever import TokenRetriever

_Settings = tuple[TokenRetriever, RefreshSchedule, frozenset[tuple[str, str]]]

_lock = threading.Lock()
_sources: weakref.WeakValueDictionary[_Settings, RefreshingTokens] = weakref.WeakValueDictionary()


def shared_token_source(
    retriever: TokenRetriever, schedule: RefreshSchedule, extensions: Mapping[str, str]
) -> RefreshingTokens:
    """Return the source of these settings. It ends when the last login with it is gone."""
    settings = (retriever, schedule, frozenset(extensions.items()))
    with _lock:
        source = _sources.get(settings)
        if source is None:
            source = _sources[settings] = RefreshingTokens(retriever, schedule, extensions)
        return source
