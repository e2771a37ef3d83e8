"""Asynchronous idioms: groups of tasks, shields, timeouts, queues, threads, contexts."""

import asyncio
import contextvars
import time

from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {"n": 3}}), ("patch", "one", {"spec": {"n": 4}})]
var = contextvars.ContextVar("var", default="unset")


@kopf.on.create("kopfexamples")
async def gather(spec, name, **_):
    async def one(i):
        await asyncio.sleep(0.01 * i)
        return i * i

    results = await asyncio.gather(*(one(i) for i in range(spec["n"])))
    note("gathered", results, asyncio.current_task() is not None)
    task = asyncio.create_task(asyncio.sleep(0.01, "slept"))
    note("shield", await asyncio.shield(task))
    try:
        await asyncio.wait_for(asyncio.sleep(10), timeout=0.05)
    except asyncio.TimeoutError:
        note("timeout")
    note("thread", await asyncio.to_thread(time.sleep, 0.01))
    loop = asyncio.get_running_loop()
    note("executor", await loop.run_in_executor(None, lambda: "ran"))


@kopf.on.create("kopfexamples")
async def context(**_):
    note("var", var.get())
    var.set("set")
    await asyncio.sleep(0)
    note("var", var.get())


@kopf.on.create("kopfexamples")
def in_thread(**_):
    var.set("thread")
    note("var", var.get())
    note("async in a thread", asyncio.run(asyncio.sleep(0.01, "done")))


@kopf.on.update("kopfexamples", timeout=5)
async def cancelled(**_):
    task = asyncio.create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        note("the task is cancelled")
    async with asyncio.timeout(1) if hasattr(asyncio, "timeout") else asyncio.Lock():
        return "update"
