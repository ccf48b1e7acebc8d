"""A conductor works while its worker is a member of the group."""

from __future__ import annotations

import time

import pytest

from sparkmirror.copy.driver.sharing.worker_group_membership import (
    RENEWALS_AFTER_FENCE,
    GroupMembership,
    MembershipMissing,
)

LATER = time.monotonic() + 1e6


def test_a_conductor_that_shares_nothing_needs_no_membership() -> None:
    membership = GroupMembership(is_required=False)
    assert membership.is_valid()
    assert membership.is_alone
    assert membership.renewals_after_fence() == 0


def test_a_shared_conductor_waits_for_the_first_membership() -> None:
    membership = GroupMembership(is_required=True)
    assert not membership.is_valid()
    with pytest.raises(MembershipMissing):
        membership.await_valid(0.0)
    membership.renew(LATER, is_alone=False)
    membership.await_valid(0.0)


def test_a_membership_ends_at_its_moment() -> None:
    membership = GroupMembership(is_required=True)
    membership.renew(time.monotonic() - 0.001, is_alone=True)
    assert not membership.is_valid()


def test_only_a_later_end_is_a_renewal() -> None:
    membership = GroupMembership(is_required=True)
    for moment in (LATER, LATER, LATER - 1, LATER + 1):
        membership.renew(moment, is_alone=False)
    assert membership.renewals == 2
    assert membership.renewals_after_fence() == 2 + RENEWALS_AFTER_FENCE


def test_the_only_member_of_a_group_does_not_wait_for_renewals() -> None:
    membership = GroupMembership(is_required=True)
    membership.renew(LATER, is_alone=True)
    assert membership.renewals_after_fence() == 0


def test_what_another_conductor_has_fenced_is_taken_back_after_some_renewals() -> None:
    membership = GroupMembership(is_required=True)
    membership.renew(LATER, is_alone=False)
    needed = membership.renewals_after_fence()
    for number in range(RENEWALS_AFTER_FENCE):
        assert not membership.may_take(needed)
        membership.renew(LATER + 1 + number, is_alone=False)
    assert membership.may_take(needed)
