# From a talk about Kopf: simple spy-handlers.
import kopf


@kopf.on.event("zalando.org", "v1", "kopfexamples")
def event_fn_with_error(**kwargs):
    raise Exception("Oops!")


@kopf.on.event("zalando.org", "v1", "kopfexamples")
def normal_event_fn(event, **kwargs):
    print(f"Event received: {event!r}")
