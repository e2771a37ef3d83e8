"""Daemons and timers."""

import asyncio

from crosslib import GROUP, call, create, delete, patch, scenario, wait

import kopf


@scenario(create(spec={"x": 1}), delete())
def daemon_async(kind):
    @kopf.daemon(GROUP, "v1", kind)
    async def fn(stopped, spec, **_):
        call(kind, "fn", x=spec["x"])
        await stopped.wait()
        call(kind, "stopped", reason=str(stopped.reason))


@scenario(create(spec={"x": 1}), delete())
def daemon_sync(kind):
    @kopf.daemon(GROUP, "v1", kind)
    def fn(stopped, **_):
        call(kind, "fn", stopped=bool(stopped))
        stopped.wait()
        call(kind, "stopped", stopped=bool(stopped))


@scenario(create(spec={"x": 1}), delete())
def daemon_cancelled(kind):
    @kopf.daemon(GROUP, "v1", kind, cancellation_timeout=2, cancellation_backoff=0.2)
    async def fn(**_):
        call(kind, "fn")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            call(kind, "cancelled")
            raise


@scenario(create(spec={"x": 1}), wait(), delete())
def daemon_ends(kind):
    @kopf.daemon(GROUP, "v1", kind)
    async def fn(**_):
        call(kind, "fn")
        return {"done": True}


@scenario(create(spec={"x": 1}), delete())
def daemon_retried(kind):
    @kopf.daemon(GROUP, "v1", kind, backoff=0.2)
    async def fn(retry, stopped, **_):
        call(kind, "fn", retry=retry)
        if retry == 0:
            raise ValueError("boo")
        if retry == 1:
            raise kopf.TemporaryError("tmp", delay=0.1)
        await stopped.wait()


@scenario(create(spec={"x": 1}), wait(), delete())
def daemon_permanent(kind):
    @kopf.daemon(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")
        raise kopf.PermanentError("never")


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), delete())
def daemon_live(kind):
    @kopf.daemon(GROUP, "v1", kind)
    async def fn(stopped, spec, **_):
        last = None
        while not stopped:
            if spec["x"] != last:
                last = spec["x"]
                call(kind, "fn", x=last)
            await stopped.wait(0.05)


@scenario(
    create(metadata={"labels": {"a": "b"}}),
    patch(metadata={"labels": {"a": "c"}}),
    patch(metadata={"labels": {"a": "b"}}),
    delete(),
)
def daemon_filtered(kind):
    @kopf.daemon(GROUP, "v1", kind, labels={"a": "b"})
    async def fn(stopped, **_):
        call(kind, "fn")
        await stopped.wait()
        call(kind, "stopped", reason=str(stopped.reason))


@scenario(create(spec={"x": 1}), delete())
def daemon_patches(kind):
    @kopf.daemon(GROUP, "v1", kind)
    async def fn(patch, retry, stopped, **_):
        call(kind, "fn", retry=retry)
        patch.status["retry"] = retry
        if retry < 2:
            raise kopf.TemporaryError("again", delay=0.1)
        await stopped.wait()


@scenario(create(spec={"x": 1}), delete())
def daemon_delayed(kind):
    @kopf.daemon(GROUP, "v1", kind, initial_delay=0.3)
    async def fn(stopped, **_):
        call(kind, "fn")
        await stopped.wait()


@scenario(create(spec={"x": 1}), delete())
def daemon_delay_computed(kind):
    @kopf.daemon(GROUP, "v1", kind, initial_delay=lambda spec, **_: spec["x"] / 4)
    async def computed(stopped, **_):
        call(kind, "computed")
        await stopped.wait()


@scenario(create(spec={"x": 1}), wait(), delete())
def timer_once(kind):
    @kopf.timer(GROUP, "v1", kind)
    def fn(**_):
        call(kind, "fn")
        return {"at": "x"}


@scenario(create(spec={"x": 1}), wait(), delete())
def timer_limited(kind):
    @kopf.timer(GROUP, "v1", kind, interval=0.4, when=lambda status, **_: status.get("n", 0) < 3)
    def fn(memo, patch, retry, **_):
        memo.setdefault("n", 0)
        memo.n += 1
        call(kind, "fn", n=memo.n, retry=retry)
        patch.status["n"] = memo.n


@scenario(create(spec={"x": 1}), wait(), delete())
def timer_errors(kind):
    @kopf.timer(GROUP, "v1", kind, interval=100, backoff=0.2)
    async def fn(retry, **_):
        call(kind, "fn", retry=retry)
        if retry < 2:
            raise ValueError("tick")


@scenario(create(spec={"x": 1}), wait(), delete())
def timer_idle(kind):
    @kopf.timer(GROUP, "v1", kind, idle=0.5, interval=100)
    async def fn(**_):
        call(kind, "fn")


@scenario(create(spec={"x": 1}), wait(), delete())
def timer_sharp(kind):
    @kopf.timer(GROUP, "v1", kind, interval=50, sharp=True, initial_delay=0.1)
    async def fn(param, **_):
        call(kind, "fn", param=param)


@scenario(create(spec={"x": 1}), patch(spec={"x": 2}), delete())
def daemon_and_changes(kind):
    @kopf.daemon(GROUP, "v1", kind)
    async def background(stopped, memo, **_):
        memo.daemon = True
        call(kind, "background")
        await stopped.wait()

    @kopf.on.create(GROUP, "v1", kind)
    def created(**_):
        call(kind, "created")

    @kopf.on.update(GROUP, "v1", kind)
    def updated(memo, **_):
        call(kind, "updated", daemon=memo.get("daemon"))

    @kopf.on.delete(GROUP, "v1", kind)
    async def deleted(**_):
        call(kind, "deleted")
