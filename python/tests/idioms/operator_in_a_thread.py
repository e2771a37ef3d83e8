"""An application whose main thread does something else; the operator has a thread and a loop."""

import asyncio
import sys
import threading

import kopf

stop = threading.Event()
ready = threading.Event()
seen = []


@kopf.on.create("volumes")
def create(name, **_):
    seen.append(name)
    return threading.current_thread() is not threading.main_thread()


def target():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(
        kopf.operator(clusterwide=True, standalone=True, ready_flag=ready, stop_flag=stop)
    )
    loop.close()


if __name__ == "__main__":
    kopf.configure(verbose=True)
    thread = threading.Thread(target=target)
    thread.start()
    ready.wait()
    print("the application is ready", flush=True)
    for line in sys.stdin:  # the application works until its input ends
        print(f"the application got {line.strip()}", flush=True)
    stop.set()
    thread.join()
    print(f"the application has seen {seen}", flush=True)
