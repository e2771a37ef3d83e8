"""Several operators in one process: own registries, own loops in threads, one of them stopped."""

import asyncio
import threading

import kopf


def declare(name):
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    @kopf.on.create("volumes", id=name, registry=registry, labels={"operator": name})
    async def create(body, **_):
        await asyncio.sleep(0)
        return threading.current_thread().name

    return registry


def work(name, stop, ready):
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = f"{name}.example.dev/finalizer"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=f"{name}.dev")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=f"{name}.dev")
    asyncio.run(
        kopf.operator(
            registry=declare(name),
            settings=settings,
            namespaces=["default"],
            standalone=True,
            ready_flag=ready,
            stop_flag=stop,
        )
    )


if __name__ == "__main__":
    kopf.configure(verbose=True)
    flags = {}
    for name in ("first", "second"):
        stop, ready = threading.Event(), threading.Event()
        thread = threading.Thread(target=work, args=(name, stop, ready), name=name)
        thread.start()
        ready.wait()
        flags[name] = (stop, thread)
    print("both are ready", flush=True)
    input()
    flags["first"][0].set()
    flags["first"][1].join()
    print("the first has stopped", flush=True)
    input()
    flags["second"][0].set()
    flags["second"][1].join()
    print("all have stopped", flush=True)
