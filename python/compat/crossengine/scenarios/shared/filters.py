"""Filters: labels, annotations, values, old and new, callbacks, combinators, selectors."""

from crosslib import GROUP, call, create, delete, patch, scenario

import kopf


@scenario(
    create("one", metadata={"labels": {"a": "b"}}),
    create("two", metadata={"labels": {"a": "c"}}),
    create("three"),
)
def labels_equal(kind):
    @kopf.on.create(GROUP, "v1", kind, labels={"a": "b"})
    def fn(name, **_):
        call(kind, "fn", name=name)


@scenario(create("one", metadata={"labels": {"a": "b"}}), create("two"))
def labels_marks(kind):
    @kopf.on.create(GROUP, "v1", kind, labels={"a": kopf.PRESENT})
    def present(name, **_):
        call(kind, "present", name=name)

    @kopf.on.create(GROUP, "v1", kind, labels={"a": kopf.ABSENT})
    def absent(name, **_):
        call(kind, "absent", name=name)


@scenario(create("one", metadata={"labels": {"a": "bcd"}}), create("two"))
def labels_callback(kind):
    def check(value, spec, **_):
        return value is not None and value.startswith("b")

    @kopf.on.create(GROUP, "v1", kind, labels={"a": check})
    def fn(name, **_):
        call(kind, "fn", name=name)


@scenario(create("one", metadata={"annotations": {"a": "b"}}), create("two"))
def annotations_marks(kind):
    @kopf.on.create(GROUP, "v1", kind, annotations={"a": kopf.PRESENT})
    def present(name, **_):
        call(kind, "present", name=name)

    @kopf.on.create(GROUP, "v1", kind, annotations={"a": kopf.ABSENT})
    def absent(name, **_):
        call(kind, "absent", name=name)


@scenario(create("one", spec={"x": 1}), create("two", spec={"x": 2}))
def when_callback(kind):
    @kopf.on.create(GROUP, "v1", kind, when=lambda spec, **_: spec.get("x") == 2)
    def fn(name, **_):
        call(kind, "fn", name=name)


@scenario(create("one", spec={"x": 1, "y": 1}), create("two", spec={"x": 1}), create("no", spec={}))
def when_combined(kind):
    def x(spec, **_):
        return "x" in spec

    def y(spec, **_):
        return "y" in spec

    @kopf.on.create(GROUP, "v1", kind, when=kopf.all_([x, y]))
    def both(name, **_):
        call(kind, "both", name=name)

    @kopf.on.create(GROUP, "v1", kind, when=kopf.any_([x, y]))
    def some(name, **_):
        call(kind, "some", name=name)

    @kopf.on.create(GROUP, "v1", kind, when=kopf.none_([x, y]))
    def none(name, **_):
        call(kind, "none", name=name)

    @kopf.on.create(GROUP, "v1", kind, when=kopf.not_(y))
    def no_y(name, **_):
        call(kind, "no_y", name=name)


@scenario(create("one", spec={"x": 1}), create("two", spec={"x": 2}), create("no", spec={}))
def value_equal(kind):
    @kopf.on.create(GROUP, "v1", kind, field="spec.x", value=1)
    def fn(name, **_):
        call(kind, "fn", name=name)

    @kopf.on.create(GROUP, "v1", kind, field="spec.x", value=kopf.ABSENT)
    def absent(name, **_):
        call(kind, "absent", name=name)

    @kopf.on.create(GROUP, "v1", kind, field="spec.x", value=kopf.PRESENT)
    def present(name, **_):
        call(kind, "present", name=name)

    @kopf.on.create(GROUP, "v1", kind, field="spec.x")
    def field(name, **_):
        call(kind, "field", name=name)


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), patch(spec={"x": 3}))
def value_callback(kind):
    @kopf.on.update(GROUP, "v1", kind, field="spec.x", value=lambda value, **_: value == 2)
    def fn(old, new, **_):
        call(kind, "fn", old=old, new=new)


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), patch(spec={"x": 3}))
def old_and_new(kind):
    @kopf.on.update(GROUP, "v1", kind, field="spec.x", old=1)
    def from_one(old, new, **_):
        call(kind, "from_one", old=old, new=new)

    @kopf.on.update(GROUP, "v1", kind, field="spec.x", new=3)
    def to_three(old, new, **_):
        call(kind, "to_three", old=old, new=new)

    @kopf.on.update(GROUP, "v1", kind, field="spec.x", old=2, new=lambda value, **_: value > 2)
    def both(old, new, **_):
        call(kind, "both", old=old, new=new)


@scenario(create(spec={}), patch(spec={"x": 2}), patch(spec={"x": None}))
def added_and_removed(kind):
    @kopf.on.field(GROUP, "v1", kind, field="spec.x", old=kopf.ABSENT, new=kopf.PRESENT)
    def added(old, new, **_):
        call(kind, "added", old=old, new=new)

    @kopf.on.field(GROUP, "v1", kind, field="spec.x", old=kopf.PRESENT, new=kopf.ABSENT)
    def removed(old, new, **_):
        call(kind, "removed", old=old, new=new)


@scenario(create(spec={"x": 1}), patch(metadata={"labels": {"a": "b"}}))
def matches_later(kind):
    @kopf.on.create(GROUP, "v1", kind, labels={"a": "b"})
    @kopf.on.update(GROUP, "v1", kind, labels={"a": "b"})
    def fn(reason, **_):
        call(kind, "fn", reason=reason)


@scenario(
    create(metadata={"labels": {"a": "b"}}),
    patch(metadata={"labels": {"a": None}}),
    delete(),
    excuses={
        "calls": "one write less, so one event less",
        "logs": "one write less, so one event less",
    },
)
def delete_filtered(kind):
    @kopf.on.delete(GROUP, "v1", kind, labels={"a": "b"})
    def fn(**_):
        call(kind, "fn")

    @kopf.on.event(GROUP, "v1", kind)
    def seen(type, meta, **_):
        call(kind, "seen", type=type, held=bool(meta.get("finalizers")))


@scenario(create(spec={"x": 1}))
def by_kind_name(kind):
    @kopf.on.create(group=GROUP, version="v1", kind=kind.capitalize())
    def fn(**_):
        call(kind, "fn")


@scenario(create(spec={"x": 1}))
def by_dotted_name(kind):
    @kopf.on.create(f"{kind}.{GROUP}")
    def dotted(resource, **_):
        call(kind, "dotted", resource=str(resource), parts=list(resource))

    @kopf.on.create(f"{kind}.v1.{GROUP}")
    def versioned(**_):
        call(kind, "versioned")

    @kopf.on.create(f"{GROUP}/v1", kind)
    def slashed(**_):
        call(kind, "slashed")

    @kopf.on.create(lambda resource: resource.plural == kind)
    def callback(**_):
        call(kind, "callback")


@scenario(create("one", spec={"x": 1}), patch("one", spec={"x": 2}))
def event_filters(kind):
    @kopf.on.event(GROUP, "v1", kind, field="spec.x", value=2)
    def fn(type, **_):
        call(kind, "fn", type=type)

    @kopf.on.event(GROUP, "v1", kind, when=lambda type, **_: type == "MODIFIED")
    def modified(type, **_):
        call(kind, "modified", type=type)


@scenario(create(spec={"x": 1}))
def filter_kwargs(kind):
    def check(**kwargs):
        call(
            kind,
            "check",
            names=sorted(
                set(kwargs)
                & {
                    "body",
                    "spec",
                    "meta",
                    "status",
                    "uid",
                    "name",
                    "namespace",
                    "labels",
                    "annotations",
                    "patch",
                    "memo",
                    "logger",
                    "resource",
                    "reason",
                    "diff",
                    "old",
                    "new",
                    "param",
                    "retry",
                    "started",
                    "runtime",
                    "stopped",
                    "type",
                    "event",
                }
            ),
        )
        return True

    @kopf.on.event(GROUP, "v1", kind, when=check)
    def fn(**_):
        pass
