"""An operator as classes: bound methods, static and class methods, callable objects, decorators."""

import functools

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"x": 1}}),
    ("patch", "one", {"spec": {"x": 2}}),
    ("delete", "one"),
]


def logged(fn):
    @functools.wraps(fn)
    async def wrapper(*args, **kwargs):
        note("before", fn.__name__, kwargs["name"])
        result = await fn(*args, **kwargs)
        note("after", fn.__name__)
        return result

    return wrapper


class Operator:
    prefix = "op"

    def __init__(self):
        self.seen = []
        kopf.on.create("kopfexamples", id="method")(self.create)
        kopf.on.create("kopfexamples", id="static")(self.static)
        kopf.on.create("kopfexamples", id="class")(self.klass)
        kopf.on.update("kopfexamples", id="callable")(Callable())
        kopf.on.delete("kopfexamples", id="partial")(functools.partial(self.delete, 7))

    @logged
    async def create(self, spec, **_):
        self.seen.append(spec["x"])
        return list(self.seen)

    @staticmethod
    def static(name, **_):
        return f"static {name}"

    @classmethod
    def klass(cls, name, **_):
        return f"{cls.prefix} {name}"

    def delete(self, number, name, **_):
        note("delete", number, name, self.seen)


class Callable:
    def __call__(self, old, new, diff, **_):
        note("callable", old["spec"], new["spec"], len(diff))


Operator()


@kopf.on.create("kopfexamples", id="lambda")
@logged
async def decorated(name, **kwargs):
    note("kwargs", sorted(kwargs))


kopf.on.create("kopfexamples", id="anonymous")(lambda spec, **_: dict(spec))
