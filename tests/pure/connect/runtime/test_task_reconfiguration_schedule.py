"""When a connector is asked for its task configs, and how long the herder waits after a failure."""

from __future__ import annotations

from sparkmirror.connect.runtime.task_reconfiguration_schedule import TaskReconfigurationSchedule


def test_requests_that_come_while_the_connector_is_asked_become_one_more_question() -> None:
    state = TaskReconfigurationSchedule()
    assert state.request()
    assert not state.request()
    assert not state.request()
    assert state.on_answer()
    assert not state.on_answer()
    assert state.request()


def test_a_new_instance_is_not_asked_because_of_requests_to_the_earlier_one() -> None:
    state = TaskReconfigurationSchedule()
    state.request()
    state.request()
    state.on_new_instance()
    assert state.request()
    assert not state.on_answer()


def test_a_retry_replaces_the_failed_question() -> None:
    state = TaskReconfigurationSchedule()
    state.request()
    state.on_failure()
    assert state.retry()
    assert not state.request()


def test_a_request_after_a_failure_does_not_wait_for_the_retry() -> None:
    state = TaskReconfigurationSchedule()
    state.request()
    state.on_failure()
    assert state.request()
    assert not state.retry(), "the request has replaced it"
    assert not state.on_answer()


def test_pauses_double_from_a_quarter_of_a_second_to_a_minute_and_a_success_resets_them() -> None:
    state = TaskReconfigurationSchedule()
    assert [state.next_retry_delay_s() for _ in range(10)] == [
        0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0,
    ]  # fmt: skip
    state.on_success()
    assert state.next_retry_delay_s() == 0.25
