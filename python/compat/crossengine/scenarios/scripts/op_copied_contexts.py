"""Events and owners from threads that outlive their handlers, by copies of the context."""

import contextvars
import threading

from crosslib import note
from kopf._cogs.structs import bodies

import kopf

STEPS = [
    ("create", "one", {"metadata": {"labels": {"app": "web"}}, "spec": {"field": 1}}),
    ("wait", ""),
]


class Manager:
    def __init__(self, body, context):
        self.context = context
        self.body = bodies.Body(
            {
                "apiVersion": body["apiVersion"],
                "kind": body["kind"],
                "metadata": {
                    "name": body["metadata"]["name"],
                    "namespace": body["metadata"]["namespace"],
                    "uid": body["metadata"]["uid"],
                },
            }
        )

    def inform(self, reason):
        self.context.run(kopf.info, self.body, reason=reason, message="from a thread")

    def work(self):
        self.inform("Begun")
        child = {"kind": "ConfigMap", "metadata": {}}
        self.context.run(kopf.adopt, child)
        note("adopted", child["metadata"]["labels"], child["metadata"]["namespace"])
        self.context.run(
            kopf.event, self.body, reason="Failed", message="from a thread", type="Error"
        )


@kopf.on.create("kopfexamples")
def create(body, memo, **_):
    memo.manager = Manager(body, contextvars.copy_context())
    threading.Timer(0.2, memo.manager.work).start()


@kopf.on.resume("kopfexamples")
@kopf.on.create("kopfexamples")
async def events(body, **_):
    kopf.info([body, {**body}], reason="Twice", message="one object, two events")
    kopf.warn(body, reason="Warned", message="%s is not a format")
    try:
        raise ValueError("nothing")
    except ValueError:
        kopf.exception(body, reason="Broken", message="It is")
