"""Admission reviews: requests, responses, and the protocol of webhook servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal, Protocol, TypedDict

from kopf._structs import bodies

Headers = dict[str, str]
"""HTTP headers of an admission request."""

SSLPeer = dict[str, Any]
"""The client certificate of an admission request, as of ``ssl.SSLSocket.getpeercert()``."""

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
"""What is done to the object that is reviewed."""


class RequestKind(TypedDict):
    """The kind of the reviewed object."""

    group: str
    version: str
    kind: str


class RequestResource(TypedDict):
    """The resource of the reviewed object."""

    group: str
    version: str
    resource: str


class UserInfo(TypedDict):
    """Who makes the reviewed request."""

    username: str
    uid: str
    groups: list[str]


class CreateOptions(TypedDict, total=False):
    """Options of a creation."""

    apiVersion: Literal["meta.k8s.io/v1"]
    kind: Literal["CreateOptions"]


class UpdateOptions(TypedDict, total=False):
    """Options of an update."""

    apiVersion: Literal["meta.k8s.io/v1"]
    kind: Literal["UpdateOptions"]


class DeleteOptions(TypedDict, total=False):
    """Options of a deletion."""

    apiVersion: Literal["meta.k8s.io/v1"]
    kind: Literal["DeleteOptions"]


class RequestPayload(TypedDict):
    """What is reviewed."""

    uid: str
    kind: RequestKind
    resource: RequestResource
    subResource: str | None
    requestKind: RequestKind
    requestResource: RequestResource
    requestSubResource: str | None
    userInfo: UserInfo
    name: str
    namespace: str | None
    operation: Operation
    options: CreateOptions | UpdateOptions | DeleteOptions | None
    dryRun: bool
    object: bodies.RawBody
    oldObject: bodies.RawBody | None


class Request(TypedDict):
    """An admission review as the API server sends it."""

    apiVersion: Literal["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]
    kind: Literal["AdmissionReview"]
    request: RequestPayload


class ResponseStatus(TypedDict, total=False):
    """Why a request is denied."""

    code: int
    message: str


class ResponsePayload(TypedDict, total=False):
    """The decision."""

    uid: str
    allowed: bool
    warnings: list[str] | None
    status: ResponseStatus | None
    patch: str | None
    patchType: Literal["JSONPatch"] | None


class Response(TypedDict):
    """An admission review as the operator answers it."""

    apiVersion: Literal["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]
    kind: Literal["AdmissionReview"]
    response: ResponsePayload


class WebhookClientConfigService(TypedDict, total=False):
    """A service in the cluster that leads to the webhook server."""

    namespace: str | None
    name: str | None
    path: str | None
    port: int | None


class WebhookClientConfig(TypedDict, total=False):
    """How the API server reaches the webhook server. Ids of handlers are added to its paths."""

    caBundle: str | None
    url: str | None
    service: WebhookClientConfigService | None


class WebhookFn(Protocol):
    """The function that a webhook server calls for every request."""

    def __call__(
        self,
        request: Request,
        *,
        webhook: str | None = None,
        headers: Headers | None = None,
        sslpeer: SSLPeer | None = None,
    ) -> Awaitable[Response]: ...


WebhookServerProtocol = Callable[[WebhookFn], AsyncIterator[WebhookClientConfig]]
"""A webhook server: it takes the function and yields client configs for as long as it serves."""
