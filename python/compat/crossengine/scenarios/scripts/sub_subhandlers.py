from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
async def parent(**_):
    @kopf.subhandler()
    async def child(**_):
        @kopf.subhandler()
        async def grandchild(**_):
            note("grandchild")
            return "g"

        return "c"

    return "p"
