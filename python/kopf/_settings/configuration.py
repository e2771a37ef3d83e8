"""The settings of an operator: plain dataclasses, read when they are used."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import logging
import warnings
from collections.abc import Iterable

from kopf._settings import arrays, diffbase, progress
from kopf._structs import reviews

_BATCHING = "Time-based event batching was removed. Please stop configuring it."


@dataclasses.dataclass
class ProcessSettings:
    """The process of the operator."""

    ultimate_exiting_timeout: float | None = 10 * 60
    """Seconds after the start of the exit when the process is killed; None: never."""


@dataclasses.dataclass
class PostingSettings:
    """Kubernetes events that the operator posts."""

    enabled: bool = True
    """Whether events are posted."""

    loggers: bool = False
    """Whether messages of per-object loggers are posted as events."""

    level: int = logging.INFO
    """The lowest level of messages that become events."""

    default_backoffs: float | Iterable[float] = (1, 1, 2, 3, 5, 8, 13, 21)
    """Delays between the attempts to post an event of ``kopf.event()`` and others."""

    logging_backoffs: float | Iterable[float] = (1, 1, 2, 3, 5)
    """Delays between the attempts to post an event that comes from a logger."""

    worker_limit: int | None = None
    """How many events are posted at the same time; None: no limit."""

    idle_timeout: float = 1.0
    """Seconds without events after which a worker ends."""

    reporting_component: str = "kopf"
    reporting_instance: str = "dev"
    event_name_prefix: str = "kopf-event-"


@dataclasses.dataclass
class PeeringSettings:
    """Several operators for the same resources: which one is active."""

    name: str = "default"
    """The name of the peering object."""

    stealth: bool = False
    """Whether keep-alives are not logged."""

    priority: int = 0
    """The operator with the highest priority is active, the others pause."""

    lifetime: int = 60
    """Seconds after the last keep-alive when a peer is considered dead."""

    mandatory: bool = False
    """Whether the operator pauses until the peering object exists."""

    standalone: bool = False
    """Whether there is no peering."""

    clusterwide: bool = False
    """Whether the peering is cluster-wide; set from the options of the operator."""

    @property
    def namespaced(self) -> bool:
        """The opposite of ``clusterwide``."""
        return not self.clusterwide

    @namespaced.setter
    def namespaced(self, value: bool) -> None:
        self.clusterwide = not value


@dataclasses.dataclass
class WatchingSettings:
    """Lists and watches."""

    server_timeout: float | None = None
    """Seconds after which the server is asked to end a watch; None: its own choice."""

    client_timeout: float | None = None
    """Seconds after which the operator ends a watch; None: never."""

    connect_timeout: float | None = None
    """Seconds for a connection; None: as in ``networking``."""

    reconnect_backoff: float = 0.1
    """Seconds before a new list after the end of a watch."""

    inactivity_timeout: float = 70.0
    """Seconds without any line of a watch after which it is started again."""

    chunk_size: int | None = None
    """How many objects are listed at once; None: all of them."""

    initial_streaming: bool = False
    """Whether existing objects come with the watch instead of a list."""

    label_selectors: arrays.SelectorMapping[str] = dataclasses.field(
        default_factory=arrays.SelectorMapping[str]
    )
    """Label selectors for the server, by resource."""

    field_selectors: arrays.SelectorMapping[str] = dataclasses.field(
        default_factory=arrays.SelectorMapping[str]
    )
    """Field selectors for the server, by resource."""

    shard_selectors: arrays.SelectorMapping[str] = dataclasses.field(
        default_factory=arrays.SelectorMapping[str]
    )
    """Shard selectors for the server, by resource."""


@dataclasses.dataclass
class QueueingSettings:
    """Queues of events, and the workers that process them."""

    worker_limit: int | None = None
    """How many objects are processed at the same time; None: no limit."""

    idle_timeout: float = 5.0
    """Seconds without events after which a worker ends."""

    exit_timeout: float = 2.0
    """Seconds that workers have to finish when the operator exits."""

    error_delays: Iterable[float] = (1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610)
    """How long an object is left alone after unexpected errors in the framework."""

    _batch_window: float = 0.1

    @property
    def batch_window(self) -> float:
        """Has no effect; use of it is a mistake."""
        warnings.warn(_BATCHING, DeprecationWarning, stacklevel=1)
        return self._batch_window

    @batch_window.setter
    def batch_window(self, value: float) -> None:
        warnings.warn(_BATCHING, DeprecationWarning, stacklevel=1)
        self._batch_window = value


@dataclasses.dataclass
class ScanningSettings:
    """Observation of resources and namespaces."""

    disabled: bool = False
    """Whether new and removed resources and namespaces are ignored after the start."""


@dataclasses.dataclass
class AdmissionSettings:
    """Admission webhooks."""

    server: reviews.WebhookServerProtocol | None = None
    """The server that accepts requests, e.g. ``kopf.WebhookServer()``."""

    managed: str | None = None
    """The name of the webhook configurations that the operator maintains; None: none."""


@dataclasses.dataclass
class ExecutionSettings:
    """How handlers are called."""

    default_backoff: float = 60
    """Seconds before the next attempt after an arbitrary error."""

    executor: concurrent.futures.Executor = dataclasses.field(
        default_factory=concurrent.futures.ThreadPoolExecutor
    )
    """Where functions that are not async run. It can be replaced at any time."""

    _max_workers: int | None = None

    rerun_outdated: bool = True
    """Run handlers again that have finished when the object changes while others are retrying.

    If false, as in the original Kopf, they miss that change.
    """

    @property
    def max_workers(self) -> int | None:
        """How many such functions run at the same time; None: as the executor was made."""
        return self._max_workers

    @max_workers.setter
    def max_workers(self, value: int) -> None:
        if value <= 0:
            raise ValueError("Can't set thread pool limit lower than 1.")
        self._max_workers = value
        if "_max_workers" not in dir(self.executor):
            raise TypeError("Current executor does not support `max_workers`.")
        setattr(self.executor, "_max_workers", value)


@dataclasses.dataclass
class NetworkingSettings:
    """Requests to the API."""

    request_timeout: float | None = 5 * 60
    """Seconds for one request."""

    connect_timeout: float | None = None
    """Seconds for a connection."""

    error_backoffs: float | Iterable[float] = (1, 1, 2, 3, 5, 8, 13, 21)
    """Delays between the attempts of a failed request; their number limits the attempts."""

    enforce_retry_after: bool = False
    """Whether ``Retry-After`` of the server replaces the delay even if it is shorter."""

    trust_env: bool = False
    """Whether proxies and ``.netrc`` of the environment are used."""


@dataclasses.dataclass
class PersistenceSettings:
    """What the operator keeps on objects."""

    finalizer: str = "kopf.zalando.org/KopfFinalizerMarker"
    """The finalizer that holds deletions until handlers are done."""

    progress_storage: progress.ProgressStorage = dataclasses.field(
        default_factory=progress.SmartProgressStorage
    )
    """Where the progress of handlers is kept."""

    diffbase_storage: diffbase.DiffBaseStorage = dataclasses.field(
        default_factory=diffbase.AnnotationsDiffBaseStorage
    )
    """Where the last handled state of objects is kept."""

    consistency_timeout: float = 5.0
    """Seconds to wait for the operator's own change to arrive before it goes on without it."""


@dataclasses.dataclass
class BackgroundSettings:
    """Daemons and timers."""

    cancellation_polling: float = 60
    """Seconds between the checks of a daemon that does not end."""

    instant_exit_timeout: float | None = None
    """Seconds that a daemon has to end before anything is logged about it."""

    instant_exit_zero_time_cycles: int | None = 10
    """Turns of the event loop for the same, if the timeout is not set."""


@dataclasses.dataclass
class LeadershipSettings:
    """Several replicas of the same operator. Kopf has no such settings."""

    mode: str = "alone"
    """``alone``; ``standby``: one replica leads; ``shards``: all replicas share the objects."""

    name: str | None = None
    """The name of the Lease; the same for all replicas, and for no other operator."""

    namespace: str | None = None
    """The namespace of the Lease; by default the operator's own."""

    lease_duration: float = 15
    """Seconds that other replicas wait after the last renewal that they saw."""

    renew_deadline: float = 10
    """Seconds that a leader goes on after the last renewal that succeeded."""

    retry_period: float = 2
    """Seconds between attempts to acquire or renew the Lease."""

    ranges: int = 64
    """How many ranges the objects are divided into; fixed when the table of shards is created."""

    shard_field: str = "uid"
    """``uid``, or ``namespace`` to keep the objects of a namespace together."""


@dataclasses.dataclass
class SnapshotsSettings:
    """A file for restarts without lists of objects. Kopf has no such settings."""

    file: str | None = None
    """The file; ``None`` turns snapshots off. Each operator needs a file of its own."""

    interval: float = 60
    """Seconds between writes of the file; it is also written at the end."""

    storages: str | None = None
    """A name for storages of your own; without it, they are not used with snapshots."""


@dataclasses.dataclass
class OperatorSettings:
    """All settings. Change them in a startup handler, or pass them to ``kopf.run()``."""

    process: ProcessSettings = dataclasses.field(default_factory=ProcessSettings)
    posting: PostingSettings = dataclasses.field(default_factory=PostingSettings)
    peering: PeeringSettings = dataclasses.field(default_factory=PeeringSettings)
    watching: WatchingSettings = dataclasses.field(default_factory=WatchingSettings)
    queueing: QueueingSettings = dataclasses.field(default_factory=QueueingSettings)
    scanning: ScanningSettings = dataclasses.field(default_factory=ScanningSettings)
    admission: AdmissionSettings = dataclasses.field(default_factory=AdmissionSettings)
    execution: ExecutionSettings = dataclasses.field(default_factory=ExecutionSettings)
    background: BackgroundSettings = dataclasses.field(default_factory=BackgroundSettings)
    networking: NetworkingSettings = dataclasses.field(default_factory=NetworkingSettings)
    persistence: PersistenceSettings = dataclasses.field(default_factory=PersistenceSettings)

    def __post_init__(self) -> None:
        # Not fields: the fields are Kopf's.
        self.leadership = LeadershipSettings()
        self.snapshots = SnapshotsSettings()

    @property
    def batching(self) -> QueueingSettings:
        """The old name of ``queueing``."""
        warnings.warn(
            "Batching settings are now queueing settings. "
            "Please rename `settings.batching` -> `settings.queueing`",
            DeprecationWarning,
            stacklevel=1,
        )
        return self.queueing
