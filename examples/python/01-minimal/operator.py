"""The smallest operator: it greets every new object, and stores the result in its status."""

import kopf


@kopf.on.create("kopf.dev", "v1", "greetings")
def greet(spec, name, logger, **_):
    message = f"Hello, {spec.get('whom', 'world')}!"
    logger.info(f"{name} says: {message}")
    return {"message": message}
