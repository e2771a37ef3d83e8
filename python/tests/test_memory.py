"""Free memory is given back after work, not during work."""

from __future__ import annotations

from kopf._engine import memory


def test_memory_is_given_back_after_work_and_after_its_connections() -> None:
    seconds = [0.0, 0.5, 1.2]
    trims: list[None] = []
    trimmer = memory.Trimmer(
        lambda: seconds.pop(0) if len(seconds) > 1 else seconds[0], lambda: trims.append(None)
    )
    trimmer.check()
    trimmer.check()
    assert not trims  # it still works
    trimmer.check()
    assert len(trims) == 1
    trimmer.check()
    trimmer.check()
    assert len(trims) == 2
    for _ in range(100):
        trimmer.check()
    assert len(trims) == 3  # nothing has happened since


def test_an_operator_that_was_never_busy_gives_nothing_back() -> None:
    trims: list[None] = []
    trimmer = memory.Trimmer(lambda: 0.0, lambda: trims.append(None))
    for _ in range(100):
        trimmer.check()
    assert not trims


def test_slow_work_gives_memory_back_in_between_and_at_its_end() -> None:
    seconds = 0.0
    trims: list[float] = []
    trimmer = memory.Trimmer(lambda: seconds, lambda: trims.append(seconds))
    for _ in range(15):
        seconds += 0.05
        trimmer.check()
    assert len(trims) == 1  # after half a second of work
    for _ in range(100):
        trimmer.check()
    assert trims[1:] == [seconds]


def test_this_process_can_give_memory_back() -> None:
    memory._trim()
