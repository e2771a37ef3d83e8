"""A Kubernetes API server in this process, for ``kopf run --embedded`` and for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kopf._structs import credentials

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

        The definitions are guessed from the selectors: they accept any content.
        """
        import json

        from kopf._handlers.native import describe_selector

        groups = [] if registry is None else _resource_groups(registry)
        selectors = [
            describe_selector(handler.selector)
            for group in groups
            for handler in group.get_all_handlers()
            if handler.selector is not None and handler.selector.fn is None
        ]
        self._native.install(json.dumps(selectors), json.dumps([dict(it) for it in documents]))

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
        import json

        text = None if body is None else json.dumps(body)
        code, answer = self._native.request(method, path, text, content_type)
        if code >= 400:
            raise RequestError(code, json.loads(answer))
        return json.loads(answer)

    def stop(self) -> None:
        """Stop the server."""
        self._native.stop()


def _resource_groups(registry: registries.OperatorRegistry) -> list[Any]:
    return [
        registry._indexing,
        registry._watching,
        registry._spawning,
        registry._changing,
        registry._webhooks,
    ]
