"""An operator that runs again with new handlers; its indexes are read outside of handlers."""

import asyncio

from kopf._core.engines.indexing import OperatorIndexers
from kopf._core.intents.registries import SmartOperatorRegistry

import kopf


class State:
    """What handlers and the application share: the memo of the operator."""

    def __init__(self, number, loop, indices):
        self.number = number
        self.indices = indices
        self.stop_flag = asyncio.Future(loop=loop)
        self.is_reloaded = False

    def __copy__(self):
        return self


def by_size(spec, name, **_):
    return {spec.get("size"): name}


async def declare_others(memo, **_):
    kopf.on.event("volumes", when=lambda name, **_: name == "config")(reload_if_configured)
    kopf.on.create("volumes", id=f"round-{memo.number}", labels={"handled": "yes"})(create)
    kopf.index("volumes", id="names")(lambda name, **_: name)


async def reload_if_configured(memo, spec, **_):
    if spec.get("round") == memo.number + 1 and not memo.stop_flag.done():
        memo.is_reloaded = True
        memo.stop_flag.set_result(None)


def create(memo, names: kopf.Index, name, **_):
    found = {key: sorted(memo.indices["by_size"][key]) for key in memo.indices["by_size"]}
    return {"found": found, "known": name in names[None], "indices": sorted(memo.indices)}


def main():
    kopf.configure(verbose=True)
    for number in (1, 2):
        registry = SmartOperatorRegistry()
        kopf.set_default_registry(registry)
        indexers = OperatorIndexers()
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        state = State(number, loop, indexers.indices)
        kopf.index("volumes", id="by_size")(by_size)
        kopf.on.startup()(declare_others)
        print(f"round {number} begins", flush=True)
        kopf.run(
            clusterwide=True,
            standalone=True,
            loop=loop,
            stop_flag=state.stop_flag,
            memo=state,
            registry=registry,
            indexers=indexers,
        )
        loop.close()
        print(f"round {number} ends, reloaded: {state.is_reloaded}", flush=True)


if __name__ == "__main__":
    main()
