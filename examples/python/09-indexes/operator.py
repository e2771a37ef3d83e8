"""In-memory indexes of objects, which are passed to all handlers."""

import kopf


@kopf.index("kopf.dev", "v1", "guests")
def seats(spec, name, **_):
    return {(spec["table"], spec["seat"]): name}


@kopf.index("kopf.dev", "v1", "guests")
def tables(spec, name, **_):
    return {spec["table"]: name}


@kopf.on.create("kopf.dev", "v1", "tables")
def count(name, tables: kopf.Index, seats: kopf.Index, **_):
    guests = sorted(tables.get(name, ()))
    return {"guests": guests, "first": next(iter(seats.get((name, 1), ())), None)}
