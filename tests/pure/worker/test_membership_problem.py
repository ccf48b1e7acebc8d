"""Each text about the place of a worker in its group is logged once."""

from __future__ import annotations

import logging

import pytest

from sparkmirror.worker.group.membership_problem import MembershipProblem


def test_a_problem_and_a_warning_are_logged_when_they_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notices = MembershipProblem("g")
    with caplog.at_level(logging.INFO, "sparkmirror.worker.group.membership_problem"):
        for text in ("a Java worker", "a Java worker", "another node"):
            notices.wait_for(text)
        for text in ("", "no right", "no right", "", ""):
            notices.warn(text)
    assert caplog.messages == [
        "a Java worker",
        "another node",
        "no right",
        "Group g: the worker is a member and notices others",
    ]
    assert (notices.problem, notices.warning) == ("another node", "")
