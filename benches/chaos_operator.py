"""The operator of `cargo xtask chaos` for Kopf itself: the same handlers, but no desired children."""

import asyncio
import itertools
import json
import os
import time

import kopf
import yaml

RESOURCE = ("chaos.kopf.dev", "v1", "gadgets")
PAUSE = 1.0
HEARTBEAT = 2.0
SLOW = 0.3

CALLS = os.open(os.environ["CALLS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
INSTANCES = itertools.count()


@kopf.on.login(retries=1)
def login(**_):
    """Kopf's own login from a kubeconfig does not support token files."""
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
        config = yaml.safe_load(file)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    with open(user["tokenFile"], encoding="utf-8") as file:
        token = file.read().strip()
    return kopf.ConnectionInfo(
        server=cluster["server"], ca_path=cluster["certificate-authority"], token=token
    )


def write(handler, body, began, outcome, **more):
    meta = body["metadata"]
    line = {
        "began": began,
        "ended": time.time(),
        "pid": os.getpid(),
        "handler": handler,
        "uid": meta["uid"],
        "name": meta["name"],
        "version": meta["resourceVersion"],
        "generation": meta.get("generation"),
        "spec": dict(body.get("spec", {})),
        "labels": dict(meta.get("labels", {})),
        "outcome": outcome,
        **more,
    }
    os.write(CALLS, (json.dumps(line) + "\n").encode())


def end(handler, body, began, outcome, **more):
    write(handler, body, began, outcome, **more)
    if outcome == "retry":
        raise kopf.TemporaryError("not yet", delay=PAUSE)
    if outcome == "failed":
        raise kopf.PermanentError("never")


@kopf.on.create(*RESOURCE)
@kopf.on.update(*RESOURCE)
async def fast(body, **_):
    end("fast", body, time.time(), "done")


@kopf.on.create(*RESOURCE)
@kopf.on.update(*RESOURCE)
async def slow(body, **_):
    began = time.time()
    await asyncio.sleep(SLOW)
    end("slow", body, began, "done")


@kopf.on.create(*RESOURCE)
@kopf.on.update(*RESOURCE)
async def flaky(body, spec, retry, **_):
    end("flaky", body, time.time(), "retry" if retry < spec.get("value", 0) % 3 else "done")


@kopf.on.create(*RESOURCE)
@kopf.on.update(*RESOURCE)
async def picky(body, spec, **_):
    end("picky", body, time.time(), "done" if spec.get("value", 0) % 7 else "failed")


@kopf.on.update(*RESOURCE)
async def changed(body, diff, **_):
    end("changed", body, time.time(), "done", diff=[[".".join(d[1]), d[2], d[3]] for d in diff])


@kopf.on.create(*RESOURCE, labels={"tier": "gold"})
@kopf.on.update(*RESOURCE, labels={"tier": "gold"})
async def gilded(body, **_):
    end("gilded", body, time.time(), "done")


@kopf.on.field(*RESOURCE, field="spec.color", backoff=1)
async def colored(body, spec, retry, old, new, **_):
    fails = spec.get("color") == "red" and retry == 0
    write("colored", body, time.time(), "retry" if fails else "done", old=old, new=new)
    if fails:
        raise ValueError("red is difficult")


@kopf.on.create(*RESOURCE)
@kopf.on.update(*RESOURCE)
async def parent(body, **_):
    write("parent", body, time.time(), "declares")

    @kopf.subhandler(id="a")
    async def a(body, **_):
        end("parent/a", body, time.time(), "done")

    @kopf.subhandler(id="b")
    async def b(body, retry, **_):
        end("parent/b", body, time.time(), "done" if retry else "retry")


@kopf.on.resume(*RESOURCE)
async def resumed(body, **_):
    end("resumed", body, time.time(), "done")


@kopf.on.delete(*RESOURCE)
async def removed(body, retry, **_):
    end("removed", body, time.time(), "done" if retry else "retry")


@kopf.timer(*RESOURCE, interval=2.0)
async def tick(body, **_):
    write("tick", body, time.time(), "tick")


@kopf.daemon(*RESOURCE, cancellation_timeout=5.0)
async def beside(body, stopped, **_):
    instance = next(INSTANCES)
    while True:
        write("beside", body, time.time(), "beat", instance=instance)
        if await stopped.wait(HEARTBEAT):
            break
    write("beside", body, time.time(), "stopped", instance=instance)
