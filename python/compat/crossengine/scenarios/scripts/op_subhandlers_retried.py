"""Sub-handlers with retries, parameters, error modes and results; some of them made in a loop."""

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"spec": {"parts": {"a": 0, "b": 1, "c": 2}}}),
    ("patch", "one", {"spec": {"parts": {"c": None, "d": 9}}}),
    ("patch", "one", {"spec": {"other": True}}),
    ("delete", "one"),
]


def part(name, failures, retry, param, **_):
    note("part", name, retry, param)
    if retry < failures:
        raise kopf.TemporaryError(f"{name} is not ready", delay=0.1)
    return {"failures": failures}


@kopf.on.create(*EX, param="creating")
@kopf.on.update(*EX, field="spec.parts", param=["updating"])
def parts(spec, param, retry, **_):
    note("parts", retry, param)

    for name, failures in spec["parts"].items():
        options = {"retries": 3, "errors": kopf.ErrorsMode.PERMANENT} if name == "d" else {}
        kopf.subhandler(id=name, param=name * 2, **options)(bound(name, failures))

    @kopf.subhandler(errors=kopf.ErrorsMode.IGNORED, backoff=0.1)
    def ignored(**_):
        note("ignored")
        raise RuntimeError("nobody cares")

    @kopf.subhandler(when=lambda spec, **_: spec.get("other"))
    def never(**_):
        note("never")


def bound(title, failures):
    def fn(retry, param, **_):
        return part(title, failures, retry, param)

    return fn


@kopf.on.delete(*EX)
async def delete(spec, **_):
    @kopf.subhandler()
    async def first(retry, **_):
        note("first", retry)
        if not retry:
            raise kopf.TemporaryError("first fails once", delay=0.2)

    await kopf.execute(fns={name: bound(name, 0) for name in spec["parts"]})

