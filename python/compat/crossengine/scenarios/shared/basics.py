"""Creation, changes, deletion, fields, events, results, errors."""

from crosslib import GROUP, call, create, delete, patch, restart, scenario, wait

import kopf


def short(diff):
    return sorted([item.op, list(item.field), item.old, item.new] for item in diff)


@scenario(create(spec={"x": 1}))
def created_once(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(spec, name, namespace, retry, reason, old, new, diff, **_):
        call(
            kind,
            "fn",
            spec=dict(spec),
            name=name,
            ns=namespace,
            retry=retry,
            reason=reason,
            old=old,
            new=new,
            diff=short(diff),
        )


@scenario(create(spec={"x": 1}))
def created_async(kind):
    @kopf.on.create(GROUP, "v1", kind)
    async def fn(spec, **_):
        call(kind, "fn", spec=dict(spec))
        return {"result": spec["x"]}


@scenario(create(spec={"x": 1}))
def result_scalar(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")
        return "text"


@scenario(create(spec={"x": 1}))
def result_list(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")
        return [1, {"a": None}, 2.5]


@scenario(create(spec={"x": 1}), subresource=True)
def result_subresource(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")
        return {"a": 1}


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), patch(spec={"y": 3}))
def updated(kind):
    @kopf.on.update(GROUP, "v1", kind)
    def fn(old, new, diff, **_):
        call(kind, "fn", old=old, new=new, diff=short(diff))


@scenario(create(spec={"x": 1}), patch(spec={"x": None}))
def updated_removed(kind):
    @kopf.on.update(GROUP, "v1", kind)
    def fn(diff, **_):
        call(kind, "fn", diff=short(diff))


@scenario(create(spec={"x": 1}), patch(metadata={"labels": {"a": "b"}}))
def updated_labels(kind):
    @kopf.on.update(GROUP, "v1", kind)
    def fn(diff, labels, **_):
        call(kind, "fn", diff=short(diff), labels=dict(labels))


@scenario(create(spec={"x": 1}), patch(metadata={"annotations": {"a": "b"}}))
def updated_annotations(kind):
    @kopf.on.update(GROUP, "v1", kind)
    def fn(diff, annotations, **_):
        call(kind, "fn", diff=short(diff), a=annotations.get("a"))


@scenario(create(spec={"x": 1}), patch(status={"a": "b"}))
def status_ignored(kind):
    @kopf.on.create(GROUP, "v1", kind)
    @kopf.on.update(GROUP, "v1", kind)
    def fn(reason, **_):
        call(kind, "fn", reason=reason)


@scenario(create(spec={"x": 1}), delete())
def deleted(kind):
    @kopf.on.delete(GROUP, "v1", kind)
    def fn(spec, reason, meta, **_):
        call(kind, "fn", spec=dict(spec), reason=reason, finalizers=list(meta["finalizers"]))


@scenario(create(spec={"x": 1}), delete())
def deleted_optional(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def created(**_):
        call(kind, "created")

    @kopf.on.delete(GROUP, "v1", kind, optional=True)
    def fn(**_):
        call(kind, "fn")


@scenario(create(spec={"x": 1}), delete())
def deleted_both(kind):
    @kopf.on.delete(GROUP, "v1", kind, optional=True)
    def optional_fn(**_):
        call(kind, "optional")

    @kopf.on.delete(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")


@scenario(create(spec={"x": 1}), delete())
def deleted_retried(kind):
    @kopf.on.delete(GROUP, "v1", kind)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=0.2)


@scenario(create(spec={"x": 1}), delete())
def deleted_failed(kind):
    @kopf.on.delete(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")
        raise kopf.PermanentError("never")


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), patch(spec={"z": 2}))
def field_changed(kind):
    @kopf.on.field(GROUP, "v1", kind, field="spec.x")
    def fn(old, new, diff, reason, **_):
        call(kind, "fn", old=old, new=new, diff=short(diff), reason=reason)


@scenario(create(spec={"x": {"y": {"z": 1}}}), patch(spec={"x": {"y": {"z": 2}}}))
def field_deep(kind):
    @kopf.on.field(GROUP, "v1", kind, field="spec.x.y")
    def fn(old, new, diff, **_):
        call(kind, "fn", old=old, new=new, diff=short(diff))


@scenario(create(spec={"x": 1}), patch(status={"phase": "a"}), patch(status={"phase": "b"}))
def field_status(kind):
    @kopf.on.field(GROUP, "v1", kind, field="status.phase")
    def fn(old, new, **_):
        call(kind, "fn", old=old, new=new)


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}))
def update_field(kind):
    @kopf.on.update(GROUP, "v1", kind, field="spec.x")
    def fn(old, new, **_):
        call(kind, "fn", old=old, new=new)

    @kopf.on.update(GROUP, "v1", kind, field="spec.other")
    def other(**_):
        call(kind, "other")


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), delete())
def raw_events(kind):
    @kopf.on.event(GROUP, "v1", kind)
    def fn(type, event, **_):
        call(kind, "fn", type=type, keys=sorted(event), x=event["object"]["spec"]["x"])


@scenario(create(spec={"x": 1}))
def raw_event_result(kind):
    @kopf.on.event(GROUP, "v1", kind)
    def fn(status, **_):
        if "fn" not in status:
            call(kind, "fn")
            return {"seen": True}


@scenario(create(spec={"x": 1}))
def raw_event_error(kind):
    @kopf.on.event(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")
        raise ValueError("boo")


@scenario(create(spec={"x": 1}))
def temporary_error(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=0.3)


@scenario(create(spec={"x": 1}))
def permanent_error(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        raise kopf.PermanentError("never")


@scenario(create(spec={"x": 1}))
def arbitrary_error(kind):
    @kopf.on.create(GROUP, "v1", kind, backoff=0.2)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        if retry < 2:
            raise ValueError("boo")


@scenario(create(spec={"x": 1}))
def arbitrary_default(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        if retry < 1:
            raise ValueError("boo")


@scenario(create(spec={"x": 1}))
def errors_ignored(kind):
    @kopf.on.create(GROUP, "v1", kind, errors=kopf.ErrorsMode.IGNORED)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        raise ValueError("boo")


@scenario(create(spec={"x": 1}))
def errors_permanent(kind):
    @kopf.on.create(GROUP, "v1", kind, errors=kopf.ErrorsMode.PERMANENT)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        raise ValueError("boo")


@scenario(create(spec={"x": 1}))
def retries_limited(kind):
    @kopf.on.create(GROUP, "v1", kind, retries=2, backoff=0.2)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        raise ValueError("boo")


@scenario(create(spec={"x": 1}))
def retries_temporary(kind):
    @kopf.on.create(GROUP, "v1", kind, retries=2)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        raise kopf.TemporaryError("tmp", delay=0.2)


@scenario(create(spec={"x": 1}))
def timeout_temporary(kind):
    @kopf.on.create(GROUP, "v1", kind, timeout=0.1)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        raise kopf.TemporaryError("tmp", delay=1)


@scenario(create(spec={"x": 1}))
def timeout_arbitrary(kind):
    @kopf.on.create(GROUP, "v1", kind, timeout=0.1, backoff=2)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        raise ValueError("boo")


@scenario(
    create(spec={"x": 1}),
    excuses={"objects": "fewer writes, so a smaller generation: results of one second go together"},
)
def several_handlers(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def first(**_):
        call(kind, "first")
        return 1

    @kopf.on.create(GROUP, "v1", kind)
    async def second(**_):
        call(kind, "second")
        return 2

    @kopf.on.create(GROUP, "v1", kind)
    def third(retry, **_):
        call(kind, "third", retry=retry)
        if not retry:
            raise kopf.TemporaryError("later", delay=0.3)


@scenario(create(spec={"x": 1}))
def custom_id(kind):
    @kopf.on.create(GROUP, "v1", kind, id="other-id", param={"p": 1})
    def fn(param, **_):
        call(kind, "fn", param=param)
        return True


@scenario(create(spec={"x": 1}))
def same_function_twice(kind):
    @kopf.on.create(GROUP, "v1", kind, id="a", param="a")
    @kopf.on.create(GROUP, "v1", kind, id="b", param="b")
    def fn(param, **_):
        call(kind, "fn", param=param)


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}))
def create_and_update(kind):
    @kopf.on.create(GROUP, "v1", kind)
    @kopf.on.update(GROUP, "v1", kind)
    @kopf.on.resume(GROUP, "v1", kind)
    def fn(reason, **_):
        call(kind, "fn", reason=reason)
        return str(reason)


@scenario(create(spec={"x": 1}), wait(), restart(), operator="restarted")
def resumed(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def created(**_):
        call(kind, "created")

    @kopf.on.resume(GROUP, "v1", kind)
    def fn(reason, **_):
        call(kind, "fn", reason=reason)


@scenario(create(spec={"x": 1}), wait(), restart(), patch(spec={"x": 2}), operator="restarted")
def resumed_updated(kind):
    @kopf.on.update(GROUP, "v1", kind)
    def updated(**_):
        call(kind, "updated")

    @kopf.on.resume(GROUP, "v1", kind)
    def fn(reason, **_):
        call(kind, "fn", reason=reason)
        return {"resumed": True}


@scenario(create(spec={"x": 1}), wait(), restart(), operator="restarted")
def half_handled(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def first(**_):
        call(kind, "first")

    @kopf.on.create(GROUP, "v1", kind)
    def second(retry, **_):
        call(kind, "second", retry=retry)
        if retry < 3:
            raise kopf.TemporaryError("later", delay=0.7)


@scenario(wait(), create(spec={"x": 1}), restart(), operator="restarted")
def half_subhandled(kind):
    @kopf.on.create(GROUP, "v1", kind)
    def fn(**_):
        @kopf.subhandler()
        def done(**_):
            call(kind, "done")
            return "d"

        @kopf.subhandler()
        def waiting(retry, **_):
            call(kind, "waiting", retry=retry)
            if retry < 1:
                raise kopf.TemporaryError("later", delay=2.5)
            return "w"


@scenario(create(spec={"x": 1}), delete(), restart(), operator="restarted")
def half_deleted(kind):
    @kopf.on.delete(GROUP, "v1", kind)
    def fn(retry, **_):
        call(kind, "fn", retry=retry)
        if retry < 1:
            raise kopf.TemporaryError("later", delay=2.5)


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), restart(), operator="restarted")
def half_updated(kind):
    @kopf.on.update(GROUP, "v1", kind)
    def done(diff, **_):
        call(kind, "done", diff=short(diff))

    @kopf.on.update(GROUP, "v1", kind)
    def waiting(retry, diff, **_):
        call(kind, "waiting", retry=retry, diff=short(diff))
        if retry < 1:
            raise kopf.TemporaryError("later", delay=2.5)


@scenario(create(spec={"x": 1}), wait(), restart(), delete(), operator="restarted")
def daemon_restarted(kind):
    @kopf.daemon(GROUP, "v1", kind)
    async def fn(stopped, **_):
        call(kind, "fn")
        await stopped.wait()
        call(kind, "stopped", reason=str(stopped.reason))
