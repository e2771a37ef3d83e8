import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.loggers = True


@kopf.on.create(*EX)
def fn(logger, **_):
    logger.info("note: hello %s", "there")
    logger.debug("note: debug")
    logger.error("note: error")
