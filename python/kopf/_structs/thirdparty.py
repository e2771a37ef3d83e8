"""Objects of optional client libraries, recognised without importing the libraries.

The libraries are slow to import, and most operators do not use them. An instance of their classes
can only exist if the library is imported already, so the names of the modules in the MRO suffice.
"""

from __future__ import annotations

import importlib
from typing import Any


class _ByModule(type):
    """A class whose instances are those of any class that is defined in given modules."""

    _prefix: str = ""

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return any(base.__module__.startswith(cls._prefix) for base in subclass.__mro__)


class PykubeObject(metaclass=_ByModule):
    """Any object of ``pykube-ng``; its dict is in ``.obj``."""

    _prefix = "pykube.objects"
    obj: dict[str, Any]


class KubernetesModelSync(metaclass=_ByModule):
    """Any model of the official ``kubernetes`` client."""

    _prefix = "kubernetes.client.models."
    metadata: Any


class KubernetesModelAsync(metaclass=_ByModule):
    """Any model of the ``kubernetes_asyncio`` client."""

    _prefix = "kubernetes_asyncio.client.models."
    metadata: Any


def model_class(like: object, name: str) -> Any:
    """Get a model class by its name from the same library as the given model."""
    library = "kubernetes_asyncio" if isinstance(like, KubernetesModelAsync) else "kubernetes"
    return getattr(importlib.import_module(f"{library}.client"), name)
