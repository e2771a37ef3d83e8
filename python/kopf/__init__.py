"""Kopf on the Rust engine: the same names, the same behaviour, less work for the machine.

Operators import this module only::

    import kopf

    @kopf.on.create('kopfexamples')
    def create_fn(spec, **kwargs):
        ...
"""

from kopf import _install

_install.refuse_original()

from kopf import on
from kopf._aliases import install as _install_aliases
from kopf._engine.owned import Owned
from kopf._handlers import lifecycles
from kopf._handlers.admission import AdmissionError
from kopf._handlers.callbacks import Logger, all_, any_, none_, not_
from kopf._handlers.causes import Reason
from kopf._handlers.execution import (
    ErrorsMode,
    HandlerRetriesError,
    HandlerTimeoutError,
    PermanentError,
    TemporaryError,
)
from kopf._handlers.family import children, desired, needs, observe
from kopf._handlers.filters import ABSENT, PRESENT
from kopf._handlers.lifecycles import get_default_lifecycle, set_default_lifecycle
from kopf._handlers.registries import (
    OperatorRegistry,
    get_default_registry,
    set_default_registry,
)
from kopf._handlers.stoppers import (
    AsyncDaemonStopperChecker,
    DaemonStopped,
    DaemonStoppingReason,
    SyncDaemonStopperChecker,
)
from kopf._handlers.subhandling import execute
from kopf._login.piggybacking import (
    login_via_async_client,
    login_via_client,
    login_via_pykube,
    login_with_kubeconfig,
    login_with_service_account,
)
from kopf._logs.loggers import LocalObjectLogger, LogFormat, ObjectLogger, configure
from kopf._models.resources import resource
from kopf._run.leading import term
from kopf._run.posting import event, exception, info, warn
from kopf._run.running import operator, run, run_tasks, spawn_tasks
from kopf._settings.configuration import OperatorSettings
from kopf._settings.diffbase import (
    AnnotationsDiffBaseStorage,
    DiffBaseStorage,
    MultiDiffBaseStorage,
    StatusDiffBaseStorage,
)
from kopf._settings.progress import (
    AnnotationsProgressStorage,
    MultiProgressStorage,
    ProgressRecord,
    ProgressStorage,
    SmartProgressStorage,
    StatusProgressStorage,
)
from kopf._structs.bodies import (
    Annotations,
    Body,
    BodyEssence,
    Labels,
    Meta,
    ObjectReference,
    OwnerReference,
    RawBody,
    RawEvent,
    RawEventType,
    Spec,
    Status,
    build_object_reference,
    build_owner_reference,
)
from kopf._structs.credentials import AiohttpSession, ConnectionInfo, LoginError
from kopf._structs.dicts import FieldPath, FieldSpec
from kopf._structs.diffs import Diff, DiffItem, DiffOperation
from kopf._structs.ephemera import Index, Memo, Store
from kopf._structs.ids import HandlerId
from kopf._structs.patches import Patch, PatchFn
from kopf._structs.references import EVERYTHING, Resource
from kopf._structs.reviews import (
    Headers,
    Operation,
    SSLPeer,
    UserInfo,
    WebhookClientConfig,
    WebhookClientConfigService,
    WebhookFn,
    WebhookServerProtocol,
)
from kopf._tools.hierarchies import (
    adjust_namespace,
    adopt,
    append_owner_reference,
    harmonize_naming,
    label,
    remove_owner_reference,
)
from kopf._tools.webhooks import (
    WebhookAutoServer,
    WebhookAutoTunnel,
    WebhookDockerDesktopServer,
    WebhookK3dServer,
    WebhookMinikubeServer,
    WebhookNgrokTunnel,
    WebhookServer,
)
from kopf._version import __commit_id__, __version__, __version_tuple__
from kopf.on import daemon, index, register, subhandler, timer

_install_aliases()

__all__ = [
    "ABSENT",
    "AdmissionError",
    "AiohttpSession",
    "Annotations",
    "AnnotationsDiffBaseStorage",
    "AnnotationsProgressStorage",
    "AsyncDaemonStopperChecker",
    "Body",
    "BodyEssence",
    "ConnectionInfo",
    "DaemonStopped",
    "DaemonStoppingReason",
    "Diff",
    "DiffBaseStorage",
    "DiffItem",
    "DiffOperation",
    "EVERYTHING",
    "ErrorsMode",
    "FieldPath",
    "FieldSpec",
    "HandlerId",
    "HandlerRetriesError",
    "HandlerTimeoutError",
    "Headers",
    "Index",
    "Labels",
    "LocalObjectLogger",
    "LogFormat",
    "Logger",
    "LoginError",
    "Memo",
    "Meta",
    "MultiDiffBaseStorage",
    "MultiProgressStorage",
    "ObjectLogger",
    "ObjectReference",
    "Operation",
    "OperatorRegistry",
    "OperatorSettings",
    "Owned",
    "OwnerReference",
    "PRESENT",
    "Patch",
    "PatchFn",
    "PermanentError",
    "ProgressRecord",
    "ProgressStorage",
    "RawBody",
    "RawEvent",
    "RawEventType",
    "Reason",
    "Resource",
    "SSLPeer",
    "SmartProgressStorage",
    "Spec",
    "Status",
    "StatusDiffBaseStorage",
    "StatusProgressStorage",
    "Store",
    "SyncDaemonStopperChecker",
    "TemporaryError",
    "UserInfo",
    "WebhookAutoServer",
    "WebhookAutoTunnel",
    "WebhookClientConfig",
    "WebhookClientConfigService",
    "WebhookDockerDesktopServer",
    "WebhookFn",
    "WebhookK3dServer",
    "WebhookMinikubeServer",
    "WebhookNgrokTunnel",
    "WebhookServer",
    "WebhookServerProtocol",
    "adopt",
    "all_",
    "any_",
    "append_owner_reference",
    "build_object_reference",
    "build_owner_reference",
    "children",
    "configure",
    "daemon",
    "desired",
    "event",
    "exception",
    "execute",
    "get_default_lifecycle",
    "get_default_registry",
    "index",
    "info",
    "label",
    "lifecycles",
    "login_via_async_client",
    "login_via_client",
    "login_via_pykube",
    "login_with_kubeconfig",
    "login_with_service_account",
    "needs",
    "none_",
    "not_",
    "observe",
    "on",
    "operator",
    "register",
    "remove_owner_reference",
    "resource",
    "run",
    "run_tasks",
    "set_default_lifecycle",
    "set_default_registry",
    "spawn_tasks",
    "subhandler",
    "term",
    "timer",
    "warn",
]
