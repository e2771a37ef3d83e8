"""A backend with records, which handlers call with aiohttp, and which fails now and then."""

import asyncio

import aiohttp
import aiohttp.web
from crosslib import note

import kopf

STEPS = [
    ("create", "zone", {"spec": {"records": {"a": "1.1.1.1", "b": "2.2.2.2"}}}),
    ("patch", "zone", {"spec": {"records": {"b": "3.3.3.3"}}}),
    ("patch", "zone", {"spec": {"records": {"a": None, "c": "4.4.4.4"}}}),
    ("patch", "zone", {"spec": {"records": {"slow": "x"}}}),
    ("delete", "zone"),
]


class Backend:
    def __init__(self):
        self.records = {}
        self.failures = 0

    async def put(self, request):
        key = request.match_info["key"]
        if key == "slow" and self.failures < 2:
            self.failures += 1
            return aiohttp.web.Response(status=503, text="busy")
        self.records[key] = (await request.json())["value"]
        return aiohttp.web.json_response({"ok": True})

    async def delete(self, request):
        self.records.pop(request.match_info["key"], None)
        return aiohttp.web.Response(status=204)


@kopf.on.startup()
async def startup(memo, **_):
    backend = memo["backend"] = Backend()
    app = aiohttp.web.Application()
    app.router.add_put("/{key}", backend.put)
    app.router.add_delete("/{key}", backend.delete)
    memo.runner = aiohttp.web.AppRunner(app)
    await memo.runner.setup()
    site = aiohttp.web.TCPSite(memo.runner, "127.0.0.1", 0)
    await site.start()
    memo.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    memo.session = aiohttp.ClientSession()


@kopf.on.cleanup()
async def cleanup(memo, **_):
    note("records", memo.backend.records)
    await memo.session.close()
    await memo.runner.cleanup()


async def put(memo, key, value):
    async with memo.session.put(f"{memo.url}/{key}", json={"value": value}) as response:
        if response.status >= 500:
            raise kopf.TemporaryError(f"backend says {response.status}", delay=0.3)
        response.raise_for_status()


@kopf.on.create("kopfexamples")
async def create(spec, memo, **_):
    await asyncio.gather(*(put(memo, key, value) for key, value in spec["records"].items()))
    note("created", sorted(spec["records"]))


@kopf.on.update("kopfexamples", field="spec.records")
async def update(diff, memo, retry, **_):
    note("update", retry, sorted((str(op), path, old, new) for op, path, old, new in diff))
    for op, path, _old, new in diff:
        if op in ("add", "change"):
            await put(memo, path[0], new)
        else:
            async with memo.session.delete(f"{memo.url}/{path[0]}") as response:
                note("deleted", path, response.status)


@kopf.on.delete("kopfexamples")
async def delete(spec, memo, **_):
    for key in sorted(spec["records"]):
        async with memo.session.delete(f"{memo.url}/{key}") as response:
            note("gone", key, response.status)
