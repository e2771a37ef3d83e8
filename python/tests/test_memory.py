"""Free memory is given back once after work, not during work."""

from __future__ import annotations

from kopf._engine import memory


def test_memory_is_given_back_once_after_work() -> None:
    times = iter([0.0, 0.5, 1.2, 1.21, 1.22, 1.23])
    trims: list[None] = []
    trimmer = memory.Trimmer(lambda: next(times), lambda: trims.append(None))
    trimmer.check()
    trimmer.check()
    assert not trims  # it still works
    trimmer.check()
    assert len(trims) == 1
    trimmer.check()
    trimmer.check()
    assert len(trims) == 1  # nothing has happened since


def test_this_process_can_give_memory_back() -> None:
    memory._trim()
