"""A web application, an HTTP client and the operator in one loop, with tasks and locks."""

import asyncio
import contextlib

import aiohttp
import aiohttp.web
import httpx

import kopf

LOCK: asyncio.Lock
queue: asyncio.Queue


@kopf.on.startup()
async def startup(memo, logger, **_):
    global LOCK, queue
    LOCK = asyncio.Lock()
    queue = asyncio.Queue()

    async def answer(request):
        return aiohttp.web.json_response({"hello": request.match_info["name"]})

    app = aiohttp.web.Application()
    app.add_routes([aiohttp.web.get("/{name}", answer)])
    memo.runner = aiohttp.web.AppRunner(app)
    await memo.runner.setup()
    site = aiohttp.web.TCPSite(memo.runner, "127.0.0.1", 0)
    await site.start()
    memo.port = site._server.sockets[0].getsockname()[1]
    memo.session = aiohttp.ClientSession()
    memo.task = asyncio.create_task(consume(logger))


async def consume(logger):
    while True:
        item = await queue.get()
        logger.info(f"consumed {item}")


@kopf.on.cleanup()
async def cleanup(memo, **_):
    memo.task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await memo.task
    await memo.session.close()
    await memo.runner.cleanup()


@kopf.on.create("volumes")
async def create(name, memo, **_):
    async with LOCK:
        url = f"http://127.0.0.1:{memo.port}/{name}"
        async with memo.session.get(url) as response:
            first = (await response.json())["hello"]
        async with httpx.AsyncClient() as client:
            second = (await client.get(url)).json()["hello"]
    await queue.put(name)
    return {"first": first, "second": second}


@kopf.daemon("volumes", cancellation_timeout=5)
async def poll(name, stopped, patch, memo, **_):
    polls = 0
    while not stopped and polls < 3:
        async with memo.session.get(f"http://127.0.0.1:{memo.port}/{name}") as response:
            patch.status["polled"] = response.status
        polls += 1
        await stopped.wait(0.1)
