"""A typed resource: its definition is generated from the classes, and handlers get instances.

Pydantic and msgspec models work in the same way as dataclasses.
"""

import dataclasses
from typing import Annotated, Literal

import kopf


@dataclasses.dataclass
class Topping:
    name: str
    grams: int = 50


@dataclasses.dataclass
class PizzaSpec:
    """What to bake."""

    toppings: list[Topping]
    size: Literal["small", "large"] = "small"
    pieces: Annotated[int, {"minimum": 1, "maximum": 12}] = 8


@dataclasses.dataclass
class PizzaStatus:
    state: str = "ordered"
    weight: int = 0


@kopf.resource("kopf.dev", "v1", shortcuts=["pz"])
class Pizza:
    spec: PizzaSpec
    status: PizzaStatus


@kopf.on.create(Pizza)
@kopf.on.update(Pizza)
def bake(spec: PizzaSpec, status: PizzaStatus, logger, **_):
    status.weight = sum(topping.grams for topping in spec.toppings)
    status.state = "baked"
    logger.info(f"A {spec.size} pizza with {len(spec.toppings)} toppings in {spec.pieces} pieces.")
