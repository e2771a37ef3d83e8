import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, id="a")
def a(**_):
    return 1


@kopf.on.create(*EX, id="b")
def b(**_):
    return [1, {"x": None}]


@kopf.on.create(*EX, id="c")
def c(**_):
    return True


@kopf.on.create(*EX, id="d")
def d(**_):
    return {}


@kopf.on.create(*EX, id="e")
def e(**_):
    return ""


@kopf.on.create(*EX, id="f")
def f(**_):
    return None
