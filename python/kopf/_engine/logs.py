"""Lines of the engine in Python's logs."""

from __future__ import annotations

import ast
import json
import logging
import re
from typing import Any

from kopf._logs import loggers
from kopf._settings import configuration
from kopf._structs import references

_EXCEPTIONS_MAX = 1000
_MARK = "\0exception:"
_WATCHED_LOGGERS = [
    logging.getLogger(name) for name in ("kopf.objects", "kopf.activities", "kopf._core", "kopf")
]
_NAMES = {
    "kopf_engine::operator::peering": "kopf._core.engines.peering",
    "kopf_engine::admission": "kopf._core.engines.admission",
    "kopf_engine::serving::probes": "kopf._core.engines.probing",
    "kopf_engine::reporting::poster": "kopf._core.engines.posting",
    "kopf_engine::background": "kopf._core.engines.daemons",
    "kopf_engine::watching::watches": "kopf._core.reactor.orchestration",
    "kopf_engine::watching::discovery": "kopf._core.reactor.orchestration",
    "kopf_engine::cluster_view": "kopf._core.reactor.observation",
    "kopf_engine::watching": "kopf._core.reactor.observation",
    "kopf_engine::reactor": "kopf._core.reactor.observation",
    "kopf_engine::cycle": "kopf.objects",
    "kopf_client::vault": "kopf._core.engines.activities",
    "kopf_client::watch": "kopf._cogs.clients.watching",
    "kopf_client::discovery": "kopf._cogs.clients.scanning",
    "kopf_client": "kopf._cogs.clients.api",
}


_DATA = re.compile(r"^(.{0,40}(?: is in progress:|ing the resource with:)) ([\[{].*)$", re.DOTALL)
_DIFF = re.compile(r"^(\w+ diff:) (\(.*\))$", re.DOTALL)
_SELECTORS = re.compile(
    r"^(Unresolved resources [^:]*:|Ambiguous resources [^:]*:) (.*?)( => \{.*\})?$"
)
_WORDS = {"true": True, "false": False, "null": None}


class Lines:
    """Logs lines of the engine, with the exceptions that belong to them."""

    def __init__(self, settings: configuration.OperatorSettings) -> None:
        super().__init__()
        self._settings = settings
        self._exceptions: dict[str, BaseException] = {}
        self._count = 0
        self._last: tuple[Any, dict[str, Any]] | None = None

    def keep(self, exception: BaseException) -> str:
        """Keep an exception until its line comes; get the details of the line."""
        self._count += 1
        details = f"{_MARK}{self._count}"
        self._exceptions[details] = exception
        if len(self._exceptions) > _EXCEPTIONS_MAX:
            del self._exceptions[next(iter(self._exceptions))]
        return details

    @staticmethod
    def level() -> int:
        """The least level that any logger of the framework shows."""
        levels = [logger.getEffectiveLevel() for logger in _WATCHED_LOGGERS]
        return max(1, min(100, *levels))

    def log(
        self,
        level: int,
        target: str,
        text: str,
        details: str | None,
        ref: tuple[str, str, str | None, str, str] | None,
        activity: str | None,
    ) -> None:
        """Log one line."""
        exception = self._exceptions.pop(details, None) if details else None
        if details and exception is None and not details.startswith(_MARK):
            text = f"{text}\n{details}"
        if level <= logging.DEBUG:
            text = _with_python_values(text)
            if text.startswith("Indexer '") and loggers.logger.isEnabledFor(level):
                # Shown with debug messages only, but as information, as in Kopf.
                level = logging.INFO
        elif level == logging.WARNING:
            text = _with_selectors(text)
        if ref is None or activity is not None:
            name = _name(target) if activity is None else f"kopf.activities.{activity}"
            logging.getLogger(name).log(level, "%s", text, exc_info=exception)
        else:
            extra = self._extra(ref)
            loggers.logger.log(level, "%s", text, exc_info=exception, extra=extra)

    def _extra(self, ref: tuple[str, str, str | None, str, str]) -> dict[str, Any]:
        """What records of ``LocalObjectLogger`` have; mostly the same as for the line before."""
        if self._last is None or self._last[0] != ref:
            api_version, kind, namespace, name, uid = ref
            reference = (api_version, kind, name, uid, namespace)
            logger = loggers.LocalObjectLogger.of(reference, self._settings)
            self._last = (ref, {**(logger.extra or {}), "k8s_skip": True})
        return self._last[1]


def _with_python_values(text: str) -> str:
    """Rewrite JSON in a line of the engine as Python writes it, as in Kopf."""
    try:
        if match := _DATA.match(text):
            return f"{match[1]} {json.loads(match[2])!r}"
        if match := _DIFF.match(text):
            return f"{match[1]} {_evaluate(ast.parse(match[2], mode='eval').body)!r}"
    except (ValueError, SyntaxError, RecursionError):
        pass
    return text


def _with_selectors(text: str) -> str:
    """Rewrite the selectors in a line of the engine as Kopf writes them."""
    match = _SELECTORS.match(text)
    if match is None:
        return text
    selectors = ", ".join(_selector(name) for name in match[2].split(", "))
    return f"{match[1]} {selectors}{match[3] or ''}"


def _selector(text: str) -> str:
    """A selector of the engine (``group/version/name``) as Kopf writes it."""
    *places, last = text.split("/")
    if len(places) not in (1, 2):
        return text
    group, version = ["", *places][-2:]
    field, is_named, name = last.partition("=")
    if not is_named:
        field, name = "any_name", last
    if name in ("*", "(matching)"):
        return text
    criteria: dict[str, Any] = {"group": group, "version": version, field: name}
    given = {key: value for key, value in criteria.items() if value != "*"}
    return repr(references.Selector(**given))


def _evaluate(node: ast.AST) -> Any:
    """Evaluate tuples, JSON and None; fail for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(_evaluate(item) for item in node.elts)
    if isinstance(node, ast.List):
        return [_evaluate(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_evaluate(key) for key in node.keys if key is not None]
        return dict(zip(keys, [_evaluate(value) for value in node.values], strict=True))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    raise ValueError(f"not data: {ast.dump(node)}")


def _name(target: str) -> str:
    """The name of a logger for lines that are not about objects."""
    for prefix, name in _NAMES.items():
        if target.startswith(prefix):
            return name
    return "kopf._core.reactor.running" if "::" in target else target
