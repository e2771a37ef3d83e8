"""Logins with what is around: client libraries, kubeconfig files, service accounts.

The logins via client libraries also configure these libraries: operators rely on it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kopf._structs import credentials

if TYPE_CHECKING:
    from kopf._handlers import callbacks
    from kopf._settings import configuration

PRIORITY_OF_CLIENT: int = 10
PRIORITY_OF_ASYNC_CLIENT: int = 15
PRIORITY_OF_PYKUBE: int = 20
PRIORITY_OF_KUBECONFIG: int = 10
PRIORITY_OF_SERVICE_ACCOUNT: int = 20

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_KUBECONFIG = "~/.kube/config"


def _is_installed(name: str) -> bool:
    """Whether a library can be imported; it is not imported for that."""
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def has_client() -> bool:
    return has_sync_client() or has_async_client()


def has_sync_client() -> bool:
    return _is_installed("kubernetes")


def has_async_client() -> bool:
    return _is_installed("kubernetes_asyncio")


def has_pykube() -> bool:
    return _is_installed("pykube")


def has_service_account() -> bool:
    return os.path.exists(f"{_ACCOUNT}/token")


def has_kubeconfig() -> bool:
    exists = os.path.exists(os.path.expanduser(_KUBECONFIG))
    return exists or bool(os.environ.get("KUBECONFIG"))


def default_logins() -> list[Callable[..., Any]]:
    """Get the logins of operators without login handlers."""
    found: list[Callable[..., Any]] = []
    if has_pykube():
        found.append(login_via_pykube)
    if has_sync_client():
        found.append(login_via_client)
    elif has_async_client():
        found.append(login_via_async_client)
    if not found:
        found += [login_with_kubeconfig] if has_kubeconfig() else []
        found += [login_with_service_account] if has_service_account() else []
    return found


def _split_header(header: str | None) -> tuple[str | None, str | None]:
    """Split an ``Authorization`` header to a scheme and a token."""
    if not header:
        return None, None
    first, space, rest = header.partition(" ")
    return (first, rest) if space else (None, first)


def _from_client_config(
    config: Any,
    header: str | None,
    *,
    settings: configuration.OperatorSettings,
    priority: int,
    proxy_url: str | None = None,
) -> credentials.ConnectionInfo:
    """Convert the configuration of a generated client."""
    scheme, token = _split_header(header)
    return credentials.ConnectionInfo(
        server=config.host,
        ca_path=config.ssl_ca_cert,
        insecure=not config.verify_ssl,
        username=config.username or None,
        password=config.password or None,
        scheme=scheme,
        token=token,
        certificate_path=config.cert_file,
        private_key_path=config.key_file,
        proxy_url=proxy_url,
        trust_env=settings.networking.trust_env,
        priority=priority,
    )


def login_via_client(
    *,
    logger: callbacks.Logger,
    settings: configuration.OperatorSettings,
    **_: Any,
) -> credentials.ConnectionInfo | None:
    """Configure the official client library, and use its configuration."""
    try:
        import kubernetes.client
        import kubernetes.config
    except ImportError:
        return None
    config_error = kubernetes.config.ConfigException
    try:
        kubernetes.config.load_incluster_config()
        logger.debug("Client is configured in cluster with service account.")
    except config_error:
        try:
            kubernetes.config.load_kube_config()
            logger.debug("Client is configured via kubeconfig file.")
        except config_error:
            raise credentials.LoginError(
                "Cannot authenticate the client library neither in-cluster, nor via kubeconfig."
            ) from None
    config = kubernetes.client.Configuration.get_default_copy()
    header = None
    for name in ("BearerToken", "authorization"):  # newer and older releases of the library
        header = header or config.get_api_key_with_prefix(name)
    return _from_client_config(config, header, settings=settings, priority=PRIORITY_OF_CLIENT)


async def login_via_async_client(
    *,
    logger: callbacks.Logger,
    settings: configuration.OperatorSettings,
    **_: Any,
) -> credentials.ConnectionInfo | None:
    """Configure ``kubernetes_asyncio``, and use its configuration."""
    try:
        import kubernetes_asyncio.client
        import kubernetes_asyncio.config
    except ImportError:
        return None
    config_error = kubernetes_asyncio.config.ConfigException
    try:
        kubernetes_asyncio.config.load_incluster_config()
        logger.debug("Async client is configured in cluster with service account.")
    except config_error:
        try:
            await kubernetes_asyncio.config.load_kube_config()
            logger.debug("Async client is configured via kubeconfig file.")
        except config_error:
            raise credentials.LoginError(
                "Cannot authenticate the async client library "
                "neither in-cluster, nor via kubeconfig."
            ) from None
    config = kubernetes_asyncio.client.Configuration.get_default_copy()
    header = config.get_api_key_with_prefix("BearerToken")
    if inspect.isawaitable(header):  # newer releases of the library
        header = await header
    return _from_client_config(
        config,
        header,
        settings=settings,
        priority=PRIORITY_OF_ASYNC_CLIENT,
        proxy_url=config.proxy,
    )


def _configure_pykube(pykube: Any, logger: callbacks.Logger) -> Any:
    """Get the configuration that ``pykube`` finds: of the pod, or else of the user."""
    with contextlib.suppress(FileNotFoundError):
        config = pykube.KubeConfig.from_service_account()
        logger.debug("Pykube is configured in cluster with service account.")
        return config
    with contextlib.suppress(pykube.PyKubeError, FileNotFoundError):
        config = pykube.KubeConfig.from_file()
        logger.debug("Pykube is configured via kubeconfig file.")
        return config
    raise credentials.LoginError(
        "Cannot authenticate pykube neither in-cluster, nor via kubeconfig."
    )


def login_via_pykube(
    *,
    logger: callbacks.Logger,
    settings: configuration.OperatorSettings,
    **_: Any,
) -> credentials.ConnectionInfo | None:
    """Use the configuration that ``pykube`` finds."""
    try:
        import pykube
    except ImportError:
        return None
    config = _configure_pykube(pykube, logger)
    cluster, user = config.cluster, config.user
    token = user.get("token")
    if user.get("auth-provider"):
        pykube.HTTPClient(config).get(version="", base="/")  # makes pykube refresh the token
        refreshed = config.user.get("auth-provider", {}).get("config", {}).get("access-token")
        token = token or refreshed

    def path_of(item: Any) -> str | None:
        return item.filename() if item else None

    return credentials.ConnectionInfo(
        server=cluster.get("server"),
        ca_path=path_of(cluster.get("certificate-authority")),
        insecure=cluster.get("insecure-skip-tls-verify"),
        username=user.get("username"),
        password=user.get("password"),
        token=token,
        certificate_path=path_of(user.get("client-certificate")),
        private_key_path=path_of(user.get("client-key")),
        default_namespace=config.namespace,
        proxy_url=cluster.get("proxy-url"),
        trust_env=settings.networking.trust_env,
        priority=PRIORITY_OF_PYKUBE,
    )


def _read(path: str) -> str | None:
    """Read a file without the spaces around; None if it does not exist."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as f:
        return f.read().strip()


def login_with_service_account(
    *, settings: configuration.OperatorSettings, **_: Any
) -> credentials.ConnectionInfo | None:
    """Use the service account of the pod that the operator runs in."""
    token = _read(f"{_ACCOUNT}/token")
    if token is None:
        return None
    namespace = _read(f"{_ACCOUNT}/namespace")
    ca_path = f"{_ACCOUNT}/ca.crt"
    return credentials.ConnectionInfo(
        priority=PRIORITY_OF_SERVICE_ACCOUNT,
        server=_SERVER_IN_CLUSTER,
        token=token or None,
        ca_path=ca_path if os.path.exists(ca_path) else None,
        default_namespace=namespace or None,
        trust_env=settings.networking.trust_env,
    )


def _kubeconfig_paths() -> list[str]:
    """Get the files of ``$KUBECONFIG``, or the usual file if it exists."""
    paths = os.environ.get("KUBECONFIG")
    if not paths:
        usual = os.path.expanduser(_KUBECONFIG)
        return [usual] if os.path.exists(usual) else []
    return [os.path.expanduser(path.strip()) for path in paths.split(os.pathsep) if path.strip()]


def _merge_kubeconfigs(paths: list[str]) -> tuple[str | None, dict[str, dict[str, Any]]]:
    """Read kubeconfig files. The first value of every name wins."""
    import yaml

    current: str | None = None
    sections: dict[str, dict[str, Any]] = {"context": {}, "cluster": {}, "user": {}}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            config: Mapping[str, Any] = yaml.safe_load(f.read()) or {}
        if current is None:
            current = config.get("current-context")
        for kind, items in sections.items():
            for item in config.get(f"{kind}s", ()):
                items.setdefault(item["name"], item.get(kind) or {})
    return current, sections


def login_with_kubeconfig(
    *, settings: configuration.OperatorSettings, **_: Any
) -> credentials.ConnectionInfo | None:
    """Use kubeconfig files; without plugins and without refresh of tokens."""
    paths = _kubeconfig_paths()
    if not paths:
        return None
    current, sections = _merge_kubeconfigs(paths)
    if current is None:
        raise credentials.LoginError("Current context is not set in kubeconfigs.")
    context = sections["context"][current]
    cluster = sections["cluster"][context["cluster"]]
    user = sections["user"][context["user"]]
    provider = user.get("auth-provider", {}).get("config", {})
    found = {
        argument: section.get(key)
        for section, keys in ((cluster, _KEYS_OF_CLUSTER), (user, _KEYS_OF_USER))
        for argument, key in keys.items()
    }
    return credentials.ConnectionInfo(
        token=user.get("token") or provider.get("access-token"),
        default_namespace=context.get("namespace"),
        trust_env=settings.networking.trust_env,
        priority=PRIORITY_OF_KUBECONFIG,
        **found,
    )


_SERVER_IN_CLUSTER = "https://kubernetes.default.svc"
_KEYS_OF_CLUSTER = {
    "server": "server",
    "proxy_url": "proxy-url",
    "insecure": "insecure-skip-tls-verify",
    "ca_path": "certificate-authority",
    "ca_data": "certificate-authority-data",
}
_KEYS_OF_USER = {
    "username": "username",
    "password": "password",
    "certificate_path": "client-certificate",
    "certificate_data": "client-certificate-data",
    "private_key_path": "client-key",
    "private_key_data": "client-key-data",
}
