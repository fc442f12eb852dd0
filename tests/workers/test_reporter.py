import threading
from collections.abc import Sequence

import pytest

from service.contracts.errors import NnfarmError
from service.contracts.jobs import Stage, StageEvent
from workers.reporter import Reporter


def event(done: int) -> StageEvent:
    return StageEvent(stage=Stage.BUILD, done=done, total=9)


class Recorder:
    """Takes reports; raises the errors it is given, one a report."""

    def __init__(self, *errors: NnfarmError | None) -> None:
        self.reports: list[list[StageEvent]] = []
        self._errors = list(errors)
        self._changed = threading.Condition()

    def __call__(self, events: Sequence[StageEvent]) -> None:
        with self._changed:
            self.reports.append(list(events))
            self._changed.notify_all()
            if self._errors and (error := self._errors.pop(0)):
                raise error

    def wait_for(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.reports) >= count, 30)


def test_events_leave_long_before_the_interval_and_in_order() -> None:
    record = Recorder()
    with Reporter(record, interval_s=3600) as reporter:
        for done in range(5):
            reporter.add(event(done))
        assert record.wait_for(1)
    assert [e.done for report in record.reports for e in report] == [0, 1, 2, 3, 4]


def test_silence_is_reported_too() -> None:
    record = Recorder()
    with Reporter(record, interval_s=0.01):
        assert record.wait_for(2)
    assert record.reports[:2] == [[], []]


def test_leaving_sends_the_rest() -> None:
    record = Recorder()
    with Reporter(record, interval_s=3600) as reporter:
        reporter.add(event(1))
        assert record.wait_for(1)
        reporter.add(event(2))
    assert [e.done for report in record.reports for e in report] == [1, 2]


def test_events_survive_an_unreachable_service() -> None:
    record = Recorder(NnfarmError("infra.unavailable", "away"))
    with Reporter(record, interval_s=0.01) as reporter:
        reporter.add(event(1))
        assert record.wait_for(2)
        assert not reporter.lost.is_set()
    assert [e.done for e in record.reports[1]] == [1]


@pytest.mark.parametrize("code", ["request.fenced", "request.not_found"])
def test_a_job_taken_away_is_lost_and_left_alone(code: str) -> None:
    record = Recorder(None, NnfarmError(code, "not yours"))
    with Reporter(record, interval_s=0.01) as reporter:
        assert reporter.lost.wait(30)
        reporter.add(event(1))
    assert len(record.reports) == 2
