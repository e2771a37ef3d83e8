from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
# Kopf waits for the next check of the daemon before it releases the object.
DIFFERS = ["objects", "lines"]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.daemon(*EX)
def fn(stopped, **_):
    note("started")
    stopped.wait()
    note("stopped")
