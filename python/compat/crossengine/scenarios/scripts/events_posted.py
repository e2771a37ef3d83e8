import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def fn(body, **_):
    kopf.info(body, reason="Info", message="hello")
    kopf.warn(body, reason="Warn", message="hello")
    try:
        raise Exception("exc")
    except Exception:
        kopf.exception(body, reason="Exc")
