"""Threads that outlive handlers, with objects of kwargs kept for later; deep copies of bodies."""

import contextvars
import copy
import json
import threading

import kopf

kept = {}


@kopf.on.create("volumes")
def create(body, spec, name, namespace, patch, memo, logger, **_):
    memo.saved = copy.deepcopy(dict(body))
    kept[name] = body
    done = threading.Event()

    def work():
        logger.info("note: from a thread")
        kopf.event(body, type="Normal", reason="Thread", message=f"about {name}")
        done.set()

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,)).start()
    done.wait(10)
    patch.setdefault("status", {})["copied"] = json.loads(json.dumps(memo.saved["spec"]))
    patch.status["merged"] = {**spec, "more": True}
    return sorted(spec)


@kopf.on.update("volumes")
def update(old, new, memo, name, body, **_):
    return {"old": old["spec"], "new": new["spec"], "before": memo.saved["spec"]}


@kopf.on.delete("volumes", optional=True)
async def delete(name, **_):
    kept.pop(name, None)
