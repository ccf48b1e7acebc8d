"""When the JVM has loaded all classes of which the archive is made."""

from __future__ import annotations

from sparkmirror.engine.driver.cds_archive import has_failed, has_loaded_all
from sparkmirror.engine.supervisor.driver_status import DriverPhase, DriverStatus

SLOW = DriverStatus(
    phase=DriverPhase.RUNNING, problem="the Spark driver has sent no status", epoch=1
)


def test_a_driver_that_is_slow_goes_on_until_its_second_epoch() -> None:
    """An archive that is made too early lacks classes, and every later start is slow."""
    assert not has_loaded_all(SLOW)
    assert not has_failed(SLOW)
    assert has_loaded_all(DriverStatus(phase=DriverPhase.RUNNING, epoch=2))


def test_a_driver_that_has_ended_makes_no_archive() -> None:
    assert has_failed(DriverStatus(phase=DriverPhase.RESTARTING, problem="no Java"))
