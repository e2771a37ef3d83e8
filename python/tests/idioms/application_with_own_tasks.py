"""An application with its own tasks: the operator is a part of it, with settings and a memo class."""

import asyncio
import contextlib

import kopf


class Memo(kopf.Memo):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def describe(self):
        return f"limit {self.limit}"


@kopf.on.create("volumes")
async def create(memo, **_):
    return {"memo": type(memo).__name__, "text": memo.describe(), "is_copy": memo is not MEMO}


@kopf.on.cleanup()
async def cleanup(**_):
    print("the operator cleans up", flush=True)


MEMO = Memo(7)


async def main():
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.process.ultimate_exiting_timeout = None
    stop, ready = asyncio.Event(), asyncio.Event()
    tasks = await kopf.spawn_tasks(
        settings=settings,
        clusterwide=True,
        standalone=True,
        stop_flag=stop,
        ready_flag=ready,
        memo=MEMO,
        identity="mine",
    )
    await ready.wait()
    print("the operator is ready", flush=True)
    beats = 0

    async def heart():
        nonlocal beats
        while True:
            beats += 1
            await asyncio.sleep(0.01)

    own = asyncio.create_task(heart())
    runner = asyncio.create_task(kopf.run_tasks(tasks, ignored={own, asyncio.current_task()}))
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, input)
    stop.set()
    await runner
    before = beats
    await asyncio.sleep(0.1)
    print(f"the heart still beats: {not own.done() and beats > before}", flush=True)
    own.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await own
    print(f"tasks left: {len(asyncio.all_tasks()) - 1}", flush=True)


if __name__ == "__main__":
    kopf.configure(verbose=True)
    asyncio.run(main())
