"""Sub-handlers and events from threads; copied contexts; nested sub-handlers with errors."""

import contextvars
import threading

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"items": ["a", "b"]}}),
    ("patch", "one", {"spec": {"items": ["a", "b", "c"]}}),
]


@kopf.on.create("kopfexamples")
@kopf.on.update("kopfexamples")
def parent(spec, body, **_):
    def declare():
        for item in spec["items"]:

            @kopf.subhandler(id=f"sub-{item}")
            def sub(retry, item=item, **_):
                note("sub", item, retry)
                if item == "b" and not retry:
                    raise kopf.TemporaryError("once", delay=0.1)
                return {"item": item}

        kopf.event(body, type="Normal", reason="Declared", message=str(len(spec["items"])))
        kopf.info(body, reason="Plain", message="from a thread")

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(declare,))
    thread.start()
    thread.join()
    note("parent")


@kopf.on.create("kopfexamples")
def outer(**_):
    @kopf.subhandler(id="mid")
    def mid(**_):
        @kopf.subhandler(id="inner", errors=kopf.ErrorsMode.PERMANENT)
        def inner(**_):
            raise ValueError("inner fails")
