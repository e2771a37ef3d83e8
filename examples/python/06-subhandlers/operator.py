"""A handler in parts: every part has its own retries, and finished parts are not repeated."""

import kopf


@kopf.on.create("kopf.dev", "v1", "dinners")
def cook(spec, **_):
    for dish in spec["dishes"]:

        @kopf.subhandler(id=dish)
        def cook_dish(dish=dish, retry=0, **_):
            if dish == "souffle" and retry < 1:
                raise kopf.TemporaryError("It has collapsed.", delay=0.2)
            return f"{dish} is ready"
