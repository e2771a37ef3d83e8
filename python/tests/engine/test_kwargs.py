"""Handlers get all kwargs that they can see."""

from __future__ import annotations

import functools
import sys

import pytest

from kopf._engine.kwargs import visible_kwargs


@pytest.fixture(autouse=True)
def no_debugger(monkeypatch):
    """Debuggers and meters of coverage may look at everything."""
    monkeypatch.setattr(sys, "gettrace", lambda: None)


async def ignores_the_rest(spec, name, *, retry, **_):
    return spec, name, retry


def ignores_all(**_):
    return {"_": "_"}


class Methods:
    def fn(self, spec, *args, **kwargs):
        return spec, args


def uses_it(spec, **kwargs):
    return kwargs["name"]


def passes_it_on(**kwargs):
    return uses_it(**kwargs)


def uses_it_with_others(spec, **kwargs):
    both = [spec, kwargs]
    return both


def uses_it_within(**kwargs):
    return [key for key in ("a",) if (lambda key=key: kwargs[key])()]


def looks_around(**kwargs):
    return locals()


def changes_it(**kwargs):
    del kwargs


def takes_no_rest(spec, name):
    return spec, name


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (ignores_the_rest, {"spec", "name", "retry"}),
        (ignores_all, set()),
        (Methods().fn, {"self", "spec"}),
        (lambda **_: None, set()),
    ],
)
def test_what_is_ignored_is_not_made(fn, names):
    assert visible_kwargs(fn) == names


@pytest.mark.parametrize(
    "fn",
    [
        uses_it,
        passes_it_on,
        uses_it_with_others,
        uses_it_within,
        looks_around,
        changes_it,
        takes_no_rest,
        functools.partial(ignores_the_rest),
        functools.wraps(ignores_the_rest)(passes_it_on),
        print,
        Methods,
    ],
)
def test_all_is_made_for_functions_that_can_see_it(fn):
    assert visible_kwargs(fn) is None


def test_all_is_made_under_a_debugger(monkeypatch):
    monkeypatch.setattr(sys, "gettrace", lambda: print)
    assert visible_kwargs(ignores_all) is None
