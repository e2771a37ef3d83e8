"""Loggers of objects, and formats of logs."""

from __future__ import annotations

import copy
import datetime
import enum
import json
import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from kopf._compat import LoggerAdapter
from kopf._structs import bodies

if TYPE_CHECKING:
    from kopf._settings import configuration

logger = logging.getLogger("kopf.objects")

DEFAULT_JSON_REFKEY = "object"

_LoggerT = TypeVar("_LoggerT", bound="ObjectLogger")
_REFERENCE = ("apiVersion", "kind", "name", "uid", "namespace")
_OWN_ATTRS = {"k8s_skip", "k8s_ref", "settings"}
_STANDARD_ATTRS = frozenset(
    {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"} | _OWN_ATTRS
)


class LogFormat(enum.Enum):
    """The formats of ``--log-format``."""

    PLAIN = "%(message)s"
    FULL = "[%(asctime)s] %(name)-20.20s [%(levelname)-8.8s] %(message)s"
    JSON = "-json-"


class ObjectFormatter(logging.Formatter):
    """The base of all formatters."""


class ObjectTextFormatter(ObjectFormatter):
    """Lines of text."""


def _severity(level: int) -> str:
    for name, limit in (("debug", 10), ("info", 20), ("warn", 30), ("error", 40)):
        if level <= limit:
            return name
    return "fatal"


class ObjectJsonFormatter(ObjectFormatter):
    """One JSON object per line, with a reference to the object of the message."""

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        *,
        refkey: str | None = None,
        timestamp: bool | str = True,
    ) -> None:
        super().__init__(fmt, datefmt)
        self._refkey = refkey or DEFAULT_JSON_REFKEY
        self._timestamp = "timestamp" if timestamp is True else timestamp

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {}
        if isinstance(record.msg, dict):
            fields["message"] = None
            fields |= record.msg
        else:
            fields["message"] = record.getMessage()
        if record.exc_info:
            fields["exc_info"] = self.formatException(record.exc_info)
        elif record.exc_text:
            fields["exc_info"] = record.exc_text
        if record.stack_info:
            fields["stack_info"] = self.formatStack(record.stack_info)
        self.add_fields(fields, record)
        return json.dumps(fields, default=_jsonable, ensure_ascii=True)

    def add_fields(self, fields: dict[str, object], record: logging.LogRecord) -> None:
        for name, value in vars(record).items():
            if name not in _STANDARD_ATTRS and not name.startswith("_"):
                fields[name] = value
        if self._timestamp:
            moment = datetime.datetime.fromtimestamp(record.created, tz=datetime.timezone.utc)
            fields[str(self._timestamp)] = moment.isoformat()
        ref = getattr(record, "k8s_ref", None)
        if ref is not None:
            fields[self._refkey] = ref
        fields.setdefault("severity", _severity(record.levelno))


def _jsonable(value: object) -> object:
    """Convert values that JSON does not have."""
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)


class ObjectPrefixingMixin(ObjectFormatter):
    """Adds ``[namespace/name]`` before messages about objects."""

    def format(self, record: logging.LogRecord) -> str:
        ref = getattr(record, "k8s_ref", None)
        if ref is not None:
            namespace, name = ref.get("namespace"), ref.get("name", "")
            prefix = f"[{namespace}/{name}]" if namespace else f"[{name}]"
            record = copy.copy(record)
            record.msg = f"{prefix} {record.msg}"
        return super().format(record)


class ObjectPrefixingTextFormatter(ObjectPrefixingMixin, ObjectTextFormatter):
    """Lines of text with prefixes."""


class ObjectPrefixingJsonFormatter(ObjectPrefixingMixin, ObjectJsonFormatter):
    """JSON with prefixes in messages."""


class ObjectLogger(LoggerAdapter):
    """A logger of one object; its messages can be posted as Kubernetes events."""

    def __init__(self, *, body: bodies.Body, settings: configuration.OperatorSettings) -> None:
        meta = body.get("metadata", {})
        ref = {
            "apiVersion": body.get("apiVersion"),
            "kind": body.get("kind"),
            "name": meta.get("name"),
            "uid": meta.get("uid"),
            "namespace": meta.get("namespace"),
        }
        super().__init__(logger, {"settings": settings, "k8s_skip": False, "k8s_ref": ref})

    @classmethod
    def of(
        cls: type[_LoggerT],
        reference: tuple[str, str, str, str, str | None],
        settings: configuration.OperatorSettings,
    ) -> _LoggerT:
        """Make a logger of an object that is known by its reference only."""
        self = cls.__new__(cls)
        ref = dict(zip(_REFERENCE, reference, strict=True))
        LoggerAdapter.__init__(
            self, logger, {"settings": settings, "k8s_skip": False, "k8s_ref": ref}
        )
        return self

    def process(
        self, msg: str, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


class LocalObjectLogger(ObjectLogger):
    """The same, but its messages are never posted as events."""

    def log(self, *args: Any, **kwargs: Any) -> None:
        kwargs["extra"] = {**(kwargs.get("extra") or {}), "k8s_skip": True}
        super().log(*args, **kwargs)


class TerseObjectLogger(LocalObjectLogger):
    """The same, but one level quieter below warnings: for indexers."""

    def isEnabledFor(self, level: int) -> bool:
        return super().isEnabledFor(level if level >= logging.WARNING else level - 10)


if TYPE_CHECKING:
    _StreamHandler = logging.StreamHandler[TextIO]
else:
    _StreamHandler = logging.StreamHandler


class _KopfStreamHandler(_StreamHandler):
    """Our handler, to find and replace it in the next call."""


def configure(
    debug: bool | None = None,
    verbose: bool | None = None,
    quiet: bool | None = None,
    log_format: LogFormat | str = LogFormat.FULL,
    log_prefix: bool | None = False,
    log_refkey: str | None = None,
) -> None:
    """Print logs to stderr. Only the command line calls it by itself."""
    handler = _KopfStreamHandler()
    handler.setFormatter(make_formatter(log_format, log_prefix, log_refkey))
    root = logging.getLogger()
    for other in [h for h in root.handlers if isinstance(h, _KopfStreamHandler)]:
        root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel("DEBUG" if debug or verbose else "WARNING" if quiet else "INFO")

    noisy = logging.getLogger("asyncio")
    noisy.propagate = bool(debug)
    if not debug:
        noisy.handlers[:] = [logging.NullHandler()]


def make_formatter(
    log_format: LogFormat | str = LogFormat.FULL,
    log_prefix: bool | None = False,
    log_refkey: str | None = None,
) -> ObjectFormatter:
    """Make a formatter; by default only text has prefixes."""
    prefixed = log_format is not LogFormat.JSON if log_prefix is None else log_prefix
    if log_format is LogFormat.JSON:
        json_class = ObjectPrefixingJsonFormatter if prefixed else ObjectJsonFormatter
        return json_class(refkey=log_refkey)
    if not isinstance(log_format, (LogFormat, str)):
        raise ValueError(f"Unsupported log format: {log_format!r}")
    text = log_format.value if isinstance(log_format, LogFormat) else log_format
    text_class = ObjectPrefixingTextFormatter if prefixed else ObjectTextFormatter
    return text_class(text)
