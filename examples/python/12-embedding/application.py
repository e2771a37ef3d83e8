"""An operator inside an application: in a thread with its own loop, with a flag to stop it."""

import asyncio
import threading

import kopf

registry = kopf.OperatorRegistry()


@kopf.on.login(registry=registry)
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.on.create("kopf.dev", "v1", "greetings", registry=registry)
def greet(name, **_):
    print(f"The application greets {name}.", flush=True)


def main() -> None:
    ready, stop = threading.Event(), threading.Event()

    def operate() -> None:
        operator = kopf.operator(
            registry=registry, clusterwide=True, ready_flag=ready, stop_flag=stop
        )
        asyncio.run(operator)

    thread = threading.Thread(target=operate)
    thread.start()
    ready.wait()
    input("Press Enter to stop. ")
    stop.set()
    thread.join()


if __name__ == "__main__":
    main()
