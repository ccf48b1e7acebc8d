"""Texts about failed requests for many topics or groups: one text per cause. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkmirror.copy.partition_problems_by_cause import cause_text, first_causes, names_by_cause
from sparkmirror.errors import ClusterError


def describe_errors_by_cause(errors: Mapping[str, ClusterError], noun: str) -> str:
    """Return `orders and 3 more topics: <the error of orders>` for each cause.

    `errors` has the error of each name. Errors that differ only in the name have the same cause.
    """
    causes = names_by_cause(
        (name, _without_name(str(error), name)) for name, error in sorted(errors.items())
    )
    texts = [cause_text(names, str(errors[names[0]]), noun) for names in causes.values()]
    return "; ".join(first_causes(texts))


def _without_name(text: str, name: str) -> str:
    """Return the text without the whole words that are the name."""
    return re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", "", text)
