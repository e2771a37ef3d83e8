"""A Kubernetes API server in this process, for ``kopf run --embedded`` and for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kopf._structs import credentials, references

if TYPE_CHECKING:
    from kopf._handlers import registries


class RequestError(Exception):
    """The server has refused a request."""

    def __init__(self, code: int, status: Mapping[str, Any]) -> None:
        super().__init__(f"{code}: {status.get('message')}")
        self.code = code
        self.status = status


class EmbeddedCluster:
    """A Kubernetes API server on loopback; it is empty at first and forgets everything at its end.

    >>> with EmbeddedCluster() as cluster:
    ...     print(cluster.url)
    """

    def __init__(self, *, port: int = 0, rbac: bool = False) -> None:
        from kopf import _native

        self._native = _native.Cluster(port=port, rbac=rbac)

    def __enter__(self) -> EmbeddedCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._native.url

    @property
    def ca_pem(self) -> str | None:
        """The certificate authority of the server, in PEM."""
        return self._native.ca_pem

    @property
    def kubeconfig_yaml(self) -> str:
        """The kubeconfig as text: for files."""
        return self._native.kubeconfig

    @property
    def kubeconfig(self) -> dict[str, Any]:
        """The kubeconfig as data."""
        import yaml

        config: dict[str, Any] = yaml.safe_load(self._native.kubeconfig)
        return config

    def serve_ui(self, operator: str, kubeconfig: str) -> str:
        """Serve the web UI of an operator on loopback until the end; return its address.

        The operator is known by the URL of its probes. The pages show commands with the kubeconfig.
        """
        return self._native.serve_ui(operator, kubeconfig)

    def connection_info(self) -> credentials.ConnectionInfo:
        """The credentials of the administrator."""
        return credentials.ConnectionInfo(
            server=self.url, ca_data=self.ca_pem, token=self._native.token
        )

    def install(
        self,
        registry: registries.OperatorRegistry | None = None,
        documents: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Define the resources of the handlers that the server does not know, then load objects.

        Typed resources have the definitions of their classes; those of others are guessed from the
        selectors, and accept any content.
        """
        self.install_described(*describe_wanted(registry, documents))

    def install_described(self, definitions: str, selectors: str, documents: str) -> None:
        """Do the same for what ``describe_wanted()`` has described, maybe in another process."""
        self._native.install(definitions, selectors, documents)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
    ) -> Any:
        """Make a request as the administrator; get the parsed answer.

        Errors of the server are raised as :class:`RequestError`.
        """
        return request(self._native, method, path, body, content_type)

    def stop(self) -> None:
        """Stop the server."""
        self._native.stop()


def request(native: Any, method: str, path: str, body: object, content_type: str) -> Any:
    """Make a request through a native cluster or world; get the parsed answer."""
    text = None if body is None else json.dumps(body)
    code, answer = native.request(method, path, text, content_type)
    if code >= 400:
        raise RequestError(code, json.loads(answer))
    return json.loads(answer)


def describe_wanted(
    registry: registries.OperatorRegistry | None, documents: Iterable[Mapping[str, Any]]
) -> tuple[str, str, str]:
    """Describe what the handlers of a registry need to be defined, and the objects to load."""
    from kopf._handlers.native import describe_selector
    from kopf._models.resources import definitions_of

    selectors = [] if registry is None else list(_selectors(registry))
    return (
        json.dumps(definitions_of(selectors)),
        json.dumps([describe_selector(selector) for selector in selectors]),
        json.dumps([dict(document) for document in documents]),
    )


def _selectors(registry: registries.OperatorRegistry) -> Iterator[references.Selector]:
    """The selectors of handlers, and of their children."""
    from kopf._handlers import family

    groups: tuple[Any, ...] = (
        registry._indexing,
        registry._watching,
        registry._spawning,
        registry._changing,
        registry._webhooks,
        registry._desiring,
    )
    for handler in (handler for group in groups for handler in group.get_all_handlers()):
        if handler.selector is not None and handler.selector.fn is None:
            yield handler.selector
        for kind in family.children_of(handler):
            yield family.selector_of(kind)
