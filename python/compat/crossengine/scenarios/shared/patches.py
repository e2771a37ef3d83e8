"""What handlers change: patches, functions, children, events, memos, sub-handlers, indexes."""

from crosslib import GROUP, call, create, delete, patch, scenario, wait

import kopf


@scenario(create(spec={"x": 1}))
def patch_everything(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(patch, **_):
        call(kind, "fn")
        patch.spec["y"] = 2
        patch.status["state"] = {"a": [1, 2]}
        patch.meta.labels["lbl"] = "v"
        patch.metadata.annotations["ann"] = "v"
        patch["extra"] = {"z": True}


@scenario(create(spec={"x": 1, "y": 2}))
def patch_removal(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(patch, **_):
        call(kind, "fn")
        patch.spec["x"] = None


@scenario(create(spec={"x": 1}), subresource=True)
def patch_subresource(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(patch, **_):
        call(kind, "fn")
        patch.spec["y"] = 2
        patch.status["state"] = "ok"


@scenario(create(spec={"items": [1, 2]}))
def patch_functions(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(patch, **_):
        call(kind, "fn")
        patch.fns.append(lambda body: body["spec"]["items"].append(3))
        patch.fns.append(lambda body: body.setdefault("status", {}).update(done=True))


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}))
def patch_in_event(kind):
    @kopf.on.event(GROUP, "v1", kind)
    def fn(patch, spec, **_):
        call(kind, "fn", x=spec["x"], y=spec.get("y"))
        patch.spec["y"] = spec["x"]


@scenario(create(spec={"x": 1}))
def patch_and_fail(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(patch, retry, **_):
        call(kind, "fn", retry=retry)
        patch.status["attempt"] = retry
        if retry < 2:
            raise kopf.TemporaryError("later", delay=0.2)


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), delete())
def memo_kept(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def created(memo, **_):
        memo.count = 1
        call(kind, "created", memo=dict(memo))

    @kopf.on.update(GROUP, "v1", kind)
    def updated(memo, **_):
        memo["count"] += 1
        call(kind, "updated", memo=dict(memo))

    @kopf.on.delete(GROUP, "v1", kind)
    def deleted(memo, **_):
        call(kind, "deleted", memo=dict(memo))


@scenario(create(spec={"x": 1}))
def events_posted(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(body, **_):
        call(kind, "fn")
        kopf.event(body, type="SomeType", reason="SomeReason", message="Some message")
        kopf.info(body, reason="AnotherReason")
        kopf.warn(body, reason="Warned", message="w" * 10)
        try:
            raise RuntimeError("Exception text.")
        except RuntimeError:
            kopf.exception(body, reason="ReasonOfError", message="text")
            kopf.exception(body)


@scenario(create(spec={"x": 1}))
def adopted(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**_):
        child = {"apiVersion": "v1", "kind": "Pod", "spec": {"template": {}}}
        kopf.adopt(child, nested=["spec.template"])
        refs = child["metadata"]["ownerReferences"]
        call(kind, "fn", child=child, n=len(refs))
        kopf.label(child, {"a": "b"})
        kopf.harmonize_naming(child, "other", forced=True, strict=True)
        call(kind, "fn", child=child)


@scenario(create(spec={"x": 1}))
def subhandlers(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)

        @kopf.subhandler()
        def a(**_):
            call(kind, "a")
            return "ra"

        @kopf.subhandler(id="bb")
        def b(retry, **_):
            call(kind, "b", retry=retry)
            if not retry:
                raise kopf.TemporaryError("sub later", delay=0.3)
            return {"k": "v"}


@scenario(create(spec={"x": 1}))
def subhandlers_executed(kind):
    @kopf.on.create(GROUP, "v1", kind)
    async def fn(retry, **_):
        call(kind, "fn", retry=retry)

        async def a(**_):
            call(kind, "a")

        def b(**_):
            call(kind, "b")

        await kopf.execute(fns=[a, b])
        call(kind, "fn-after", retry=retry)


@scenario(create(spec={"x": 1}))
def subhandlers_mapped(kind):
    @kopf.on.create(GROUP, "v1", kind)
    async def fn(**_):
        call(kind, "fn")

        def one(**_):
            call(kind, "one")

        await kopf.execute(fns={"x1": one, "x2": one}, lifecycle=kopf.lifecycles.all_at_once)


@scenario(create(spec={"items": ["p", "q"]}))
def subhandlers_registered(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(spec, **_):
        call(kind, "fn")
        for item in spec["items"]:

            def single(item=item, **_):
                call(kind, "single", item=item)

            kopf.register(single, id=item)


@scenario(create(spec={"x": 1}))
def subhandlers_nested(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")

        @kopf.subhandler()
        def outer(**_):
            call(kind, "outer")

            @kopf.subhandler()
            def inner(**_):
                call(kind, "inner")
                return 1


@scenario(create(spec={"x": 1}))
def subhandlers_failed(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")

        @kopf.subhandler()
        def bad(**_):
            call(kind, "bad")
            raise kopf.PermanentError("sub never")

        @kopf.subhandler(errors=kopf.ErrorsMode.IGNORED)
        def ignored(**_):
            call(kind, "ignored")
            raise ValueError("sub boo")


@scenario(create(spec={"x": 1, "f": 1}), patch(spec={"f": 2}))
def subhandlers_field(kind):
    @kopf.on.update(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")

        @kopf.subhandler(field="spec.f")
        def changed(old, new, **_):
            call(kind, "changed", old=old, new=new)

        @kopf.subhandler(field="spec.x")
        def unchanged(**_):
            call(kind, "unchanged")


@scenario(
    create("one", spec={"x": 1}),
    create("two", spec={"x": 1}),
    patch("two", spec={"x": 2}),
    delete("one"),
    create("probe", spec={"probe": True}),
)
def indexed(kind):
    @kopf.index(GROUP, "v1", kind, id="by_x")
    def by_x(spec, name, **_):
        return {spec["x"]: name} if "x" in spec else None

    @kopf.index(GROUP, "v1", kind, id="by_tuple")
    async def by_tuple(namespace, name, spec, **_):
        return {(namespace, spec.get("x")): name}

    @kopf.index(GROUP, "v1", kind, id="flat", field="spec.x")
    def flat(name, **_):
        return name

    @kopf.on.create(GROUP, "v1", kind, when=lambda spec, **_: spec.get("probe"))
    def fn(by_x, by_tuple, flat, **_):
        call(
            kind,
            "fn",
            by_x={str(k): sorted(v) for k, v in by_x.items()},
            by_tuple=sorted([list(map(str, k)), sorted(v)] for k, v in by_tuple.items()),
            flat=sorted(flat.get(None, ())),
            has=1 in by_x,
            n=len(by_x),
        )


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}))
def index_errors(kind):
    @kopf.index(GROUP, "v1", kind, id="failing_index")
    def failing_index(spec, **_):
        call(kind, "index", x=spec["x"])
        if spec["x"] == 1:
            raise kopf.PermanentError("no index")
        return spec["x"]

    @kopf.on.event(GROUP, "v1", kind)
    def fn(failing_index, spec, **_):
        call(kind, "fn", x=spec["x"], values=list(failing_index.get(None, ())))


@scenario(create(spec={"x": 1}))
def logged(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(logger, **_):
        call(kind, "fn")
        logger.info("Hello %s", "there")
        logger.warning("Careful", extra={"a": 1})
        try:
            raise ValueError("v")
        except ValueError:
            logger.exception("Oops")


@scenario(create(spec={"x": 1}))
def kwargs_names(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**kwargs):
        own = {name for name in kwargs if not name.startswith(("by_", "flat", "failing"))}
        call(
            kind,
            "fn",
            names=sorted(own),
            type=type(kwargs["body"]).__name__,
            started=str(kwargs["started"].tzinfo),
            memo=type(kwargs["memo"]).__name__,
        )


@scenario(create(spec={"nested": {"list": [1]}}))
def views(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(body, spec, meta, status, labels, annotations, **_):
        spec["nested"]["list"].append(2)
        call(
            kind,
            "fn",
            same=body["spec"]["nested"] is spec["nested"],
            value=spec["nested"]["list"],
            status=dict(status),
            labels=dict(labels),
            uid=bool(meta.uid),
            k=body["kind"],
            keys=sorted(body),
            managed="managedFields" in meta,
            rep=repr(spec),
        )
        try:
            spec["absent"]
        except KeyError as e:
            call(kind, "fn", error=repr(e))


@scenario(create(spec={"x": 1}), wait())
def stealth(kind):
    @kopf.on.create(GROUP, "v1", kind, labels={"never": "x"})
    def never(**_):
        call(kind, "never")

    @kopf.on.event(GROUP, "v1", kind)
    def fn(meta, **_):
        call(kind, "fn", annotations=sorted(meta.annotations))
