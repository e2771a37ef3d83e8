"""Errors of all kinds: own subclasses, chained ones, in groups, exits, wrong results, warnings."""

import warnings

from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {}})]


class Soon(kopf.TemporaryError):
    def __init__(self, text="soon"):
        super().__init__(text, delay=0.1)


class Never(kopf.PermanentError):
    pass


@kopf.on.create("kopfexamples")
def soon(retry, **_):
    note("soon", retry)
    if retry < 2:
        raise Soon()


@kopf.on.create("kopfexamples")
def never(**_):
    raise Never("never", {"with": "arguments"})


@kopf.on.create("kopfexamples", backoff=0.1, retries=2)
async def chained(**_):
    try:
        {}["x"]
    except KeyError as e:
        raise RuntimeError("chained") from e


@kopf.on.create("kopfexamples", errors=kopf.ErrorsMode.IGNORED)
def warns(**_):
    warnings.warn("a warning", stacklevel=1)
    raise ValueError("ignored", 1)


@kopf.on.create("kopfexamples", errors=kopf.ErrorsMode.PERMANENT)
def empty(**_):
    raise Exception


@kopf.on.create("kopfexamples", retries=2, backoff=0.1)
def asserts(**_):
    assert 1 == 2, "one is not two"
