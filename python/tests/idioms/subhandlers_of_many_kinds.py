"""Sub-handlers by loops, by registration, and by ``kopf.execute``, in threads and coroutines."""

import asyncio
import functools

import kopf


async def item_fn(item, logger, retry, **_):
    if item == "flaky" and not retry:
        raise kopf.TemporaryError("once more", delay=0.1)
    return {"handled": item}


@kopf.on.create("volumes")
def in_a_thread(spec, **_):
    for item in spec.get("items", []):

        @kopf.subhandler(id=f"item-{item}")
        def handle(item=item, **_):
            return item

    kopf.register(functools.partial(item_fn, "flaky"), id="registered")
    return "parent"


@kopf.on.create("volumes")
async def in_the_loop(spec, **_):
    fns = {item: functools.partial(item_fn, item) for item in spec.get("items", [])}
    fns[0] = functools.partial(item_fn, "numbered")
    await kopf.execute(fns=fns)


@kopf.on.create("volumes")
def executed_from_a_thread(spec, **_):
    def inner(**_):
        return "inner"

    asyncio.run(kopf.execute(fns={"inner": inner}))
    return "outer"
