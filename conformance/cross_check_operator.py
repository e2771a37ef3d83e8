"""The Kopf side of the cross-check: the same handlers as in `crates/kopf/examples/cross_check/main.rs`."""

import kopf

from cross_check_common import KIND, note

LONG = "a_handler_with_a_name_that_is_longer_than_the_key_of_an_annotation_may_be"


@kopf.on.create(*KIND)
def first(retry, reason, body, spec, logger, **_):
    note("first", retry, reason)
    kopf.info(body, reason="Created", message="seen by first")
    logger.warning("first is at work")
    logger.debug("nobody wants to know")
    return {"message": f"hello {spec.get('field')}"}


@kopf.on.create(*KIND)
def second(retry, reason, **_):
    note("second", retry, reason)
    if retry < 1:
        raise kopf.TemporaryError("not yet, ü", delay=1.5)
    return "done"


@kopf.on.create(*KIND)
def failing(retry, reason, **_):
    note("failing", retry, reason)
    raise kopf.PermanentError("never")


@kopf.on.create(*KIND, errors=kopf.ErrorsMode.IGNORED)
def ignored(retry, reason, **_):
    note("ignored", retry, reason)
    raise ValueError("so what")


@kopf.on.create(*KIND, retries=2, backoff=0.1)
def exhausted(retry, reason, **_):
    note("exhausted", retry, reason)
    raise ValueError("again and again")


@kopf.on.create(*KIND, id=LONG)
def long_name(retry, reason, **_):
    note(LONG, retry, reason)


@kopf.on.create(*KIND)
@kopf.on.update(*KIND, field="spec.items")
async def parent(**_):
    @kopf.subhandler(id="a")
    def sub_a(retry, reason, **_):
        note("parent/a", retry, reason)
        return "r-a"

    @kopf.subhandler(id="b")
    def sub_b(retry, reason, **_):
        note("parent/b", retry, reason)
        if retry < 1:
            raise kopf.TemporaryError("not yet", delay=0.1)
        return "r-b"

    @kopf.subhandler(id="c")
    async def sub_c(**_):
        @kopf.subhandler(id="x")
        def sub_x(retry, reason, **_):
            note("parent/c/x", retry, reason)
            return {"x": 1}


@kopf.on.field(*KIND, field="spec.field")
def field_fn(retry, reason, old, new, **_):
    note("field_fn", retry, reason)
    return {"old": old, "new": new}


@kopf.on.update(*KIND)
def changed(retry, reason, diff, patch, **_):
    note("changed", retry, reason)
    patch.status["fields"] = sorted(".".join(item.field) for item in diff)


@kopf.on.update(*KIND)
def changed_too(retry, reason, **_):
    note("changed_too", retry, reason)


@kopf.on.resume(*KIND)
def resumed(retry, reason, **_):
    note("resumed", retry, reason)


@kopf.on.delete(*KIND)
def delete_first(retry, reason, **_):
    note("delete_first", retry, reason)


@kopf.on.delete(*KIND)
def delete_second(retry, reason, **_):
    note("delete_second", retry, reason)


@kopf.daemon(*KIND, labels={"background": "yes"})
async def daemon_fn(**_):
    return {"ran": True}


@kopf.timer(*KIND, labels={"background": "yes"}, interval=600)
def timer_fn(**_):
    return "ticked"
