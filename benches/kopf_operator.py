"""The same operator for Kopf and for our Python package: the variable CASE names the case."""

import os
import time

import kopf

CASE = os.environ.get("CASE", "")
RESOURCE = ("bench.kopf.dev", "v1", "widgets")

if CASE == "event":

    @kopf.on.create(*RESOURCE)
    async def create(body, **_):
        kopf.info(body, reason="Created", message="seen by the handler")

elif CASE == "sync":

    @kopf.on.create(*RESOURCE)
    def create(**_):
        return {"ok": True}

elif CASE == "kwargs":

    @kopf.on.create(*RESOURCE)
    async def create(**kwargs):
        return {"ok": len(kwargs) > 20 and bool(kwargs["spec"])}

elif CASE == "work":

    @kopf.on.create(*RESOURCE)
    async def create(**_):
        until = time.thread_time() + 0.003
        while time.thread_time() < until:
            pass
        return {"ok": True}

elif CASE == "silent":

    @kopf.on.create(*RESOURCE)
    async def create(**_):
        pass

else:

    @kopf.on.create(*RESOURCE)
    async def create(**_):
        return {"ok": True}


if CASE in ("two", "two-delete"):

    @kopf.on.create(*RESOURCE)
    async def second(**_):
        return {"ok": True}


if CASE == "retry":

    @kopf.on.create(*RESOURCE)
    async def stubborn(retry, **_):
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=0.1)
        return {"ok": True}


if CASE == "update":

    @kopf.on.update(*RESOURCE)
    async def update(**_):
        return {"ok": True}


if CASE in ("delete", "two-delete"):

    @kopf.on.delete(*RESOURCE)
    async def delete(**_):
        pass
