"""Decorators, registries, filters, calls, sub-handlers, toolkits, logs."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import kopf
from kopf._engine.declaring import signature_of
from kopf._handlers import causes, execution, invocation, registries, subhandling
from kopf._handlers.native import describe_handler
from kopf._logs import loggers
from kopf._run import posting

KEXES = kopf.Resource("kopf.dev", "v1", "kopfexamples", namespaced=True)


@pytest.fixture
def registry() -> Iterator[kopf.OperatorRegistry]:
    before = kopf.get_default_registry()
    fresh = kopf.OperatorRegistry()
    kopf.set_default_registry(fresh)
    yield fresh
    kopf.set_default_registry(before)


def test_signatures_are_shown_as_they_were_written() -> None:
    async def create(spec: kopf.Spec, retries: int = 3, **_: Any) -> None: ...

    written = "async def create(spec: kopf.Spec, retries: int = 3, **_: Any) -> None"
    assert signature_of(create) == written
    assert signature_of(lambda **_: None) == "def <lambda>(**_)"


def make_cause(raw: dict[str, Any] | None = None, **changes: Any) -> causes.ChangingCause:
    body = kopf.Body(raw if raw is not None else {"metadata": {"name": "n", "uid": "u"}})
    fields: dict[str, Any] = {
        "logger": logging.getLogger("test"),
        "indices": {},
        "memo": kopf.Memo(),
        "resource": KEXES,
        "patch": kopf.Patch(),
        "body": body,
        "initial": False,
        "reason": kopf.Reason.CREATE,
    }
    return causes.ChangingCause(**(fields | changes))


def invoke(handler: Any, cause: causes.ChangingCause) -> execution.Outcome:
    """Make one attempt of a handler."""

    class Fresh:
        retries = 0
        started = datetime.datetime.now(datetime.timezone.utc)
        runtime = datetime.timedelta(0)
        awakened = True

    return asyncio.run(
        execution.execute_handler_once(
            settings=kopf.OperatorSettings(),
            handler=handler,
            cause=cause,
            state=Fresh(),
            lifecycle=kopf.lifecycles.all_at_once,
            extra_context=subhandling.subhandling_context,
        )
    )


def test_decorators_return_the_function_and_fields_are_in_ids(
    registry: kopf.OperatorRegistry,
) -> None:
    def fn(**_: Any) -> None: ...

    assert kopf.on.update("kopfexamples", field="spec.x")(fn) is fn
    (handler,) = registry._changing.get_all_handlers()
    name = f"{test_decorators_return_the_function_and_fields_are_in_ids.__name__}.<locals>.fn"
    assert handler.id == f"{name}/spec.x"
    described = describe_handler(handler)
    assert described["kind"] == "update" and described["field"] == ["spec", "x"]
    json.dumps(described)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"value": 1}, TypeError),
        ({"field": "a", "value": 1, "old": 2}, TypeError),
        ({"labels": {"a": None}}, ValueError),
        ({"annotations": {"a": None}}, ValueError),
    ],
)
def test_wrong_options_are_refused(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        kopf.on.update("x", registry=kopf.OperatorRegistry(), **options)(lambda **_: None)


def test_empty_operations_are_refused() -> None:
    with pytest.raises(ValueError, match="non-empty"):
        kopf.on.validate("x", operations=[], registry=kopf.OperatorRegistry())(lambda **_: None)


def test_subhandlers_outside_of_handlers_are_refused() -> None:
    with pytest.raises(LookupError):
        kopf.subhandler()(lambda **_: None)


def test_a_function_under_two_decorators_runs_once(registry: kopf.OperatorRegistry) -> None:
    @kopf.on.resume("kopfexamples")
    @kopf.on.create("kopfexamples")
    def fn(**_: Any) -> None: ...

    cause = make_cause(initial=True)
    assert len(registry._changing.get_handlers(cause)) == 1


@pytest.mark.parametrize(
    ("options", "labels", "matches"),
    [
        ({"labels": {"a": "b"}}, {"a": "b"}, True),
        ({"labels": {"a": "b"}}, {"a": "c"}, False),
        ({"labels": {"a": kopf.PRESENT}}, {}, False),
        ({"labels": {"a": kopf.ABSENT}}, {}, True),
        ({"labels": {"a": lambda value, **_: value is None}}, {}, True),
        ({"when": lambda name, **_: name == "n"}, {}, True),
        ({"when": kopf.not_(lambda **_: True)}, {}, False),
        ({"when": kopf.all_([lambda **_: True, lambda **_: False])}, {}, False),
        ({"when": kopf.any_([lambda **_: True, lambda **_: False])}, {}, True),
        ({"when": kopf.none_([lambda **_: False])}, {}, True),
        ({"field": "spec.x", "value": 1}, {}, True),
        ({"field": "spec.x", "value": lambda v, **_: v == 2}, {}, False),
        ({"field": "spec.z", "value": kopf.ABSENT}, {}, True),
        ({"field": "spec.z", "value": lambda v, **_: v is None}, {}, True),
    ],
)
def test_filters(registry: kopf.OperatorRegistry, options: Any, labels: Any, matches: bool) -> None:
    kopf.on.create("kopfexamples", **options)(lambda **_: None)
    raw = {"metadata": {"name": "n", "labels": labels}, "spec": {"x": 1}}
    cause = make_cause(raw, new={"spec": {"x": 1}})
    assert bool(registry._changing.get_handlers(cause)) is matches


def test_explicit_logins_replace_the_default_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    registry = registries.SmartOperatorRegistry()
    fallback = registry._activities.get_handlers(causes.Activity.AUTHENTICATION)
    assert fallback and all(handler._fallback for handler in fallback)
    kopf.on.login(registry=registry, id="mine")(lambda **_: None)
    found = registry._activities.get_handlers(causes.Activity.AUTHENTICATION)
    assert [handler.id for handler in found] == ["mine"]


def test_threads_see_contextvars_and_the_object(registry: kopf.OperatorRegistry) -> None:
    seen: list[Any] = []

    @kopf.on.create("kopfexamples")
    def fn(**_: Any) -> None:
        child: dict[str, Any] = {}
        kopf.adopt(child)
        seen.append(child["metadata"]["ownerReferences"][0]["uid"])

    (handler,) = registry._changing.get_all_handlers()
    outcome = invoke(handler, make_cause())
    assert outcome.final and outcome.exception is None and seen == ["u"]


def test_a_cancelled_thread_is_awaited() -> None:
    done: list[str] = []

    async def main() -> None:
        import time

        def slow(**_: Any) -> None:
            time.sleep(0.2)
            done.append("thread")

        task = asyncio.create_task(invocation.invoke(slow))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        done.append("task")

    asyncio.run(main())
    assert done == ["thread", "task"]


def test_subhandlers_store_progress_and_ask_for_another_pass(
    registry: kopf.OperatorRegistry,
) -> None:
    @kopf.on.create("kopfexamples", id="parent")
    def parent(**_: Any) -> None:
        @kopf.subhandler(id="good")
        def good(**_: Any) -> str:
            return "result"

        @kopf.subhandler(id="later")
        def later(**_: Any) -> None:
            raise kopf.TemporaryError("wait", delay=5)

    (handler,) = registry._changing.get_all_handlers()
    cause = make_cause()
    outcome = invoke(handler, cause)
    assert not outcome.final and isinstance(outcome.exception, execution.HandlerChildrenRetry)
    assert 4 < (outcome.delay or 0) <= 5
    assert set(outcome.subrefs) == {"parent/good", "parent/later"}
    assert cause.patch["status"] == {"parent/good": "result"}
    annotations = cause.patch["metadata"]["annotations"]
    good = json.loads(annotations["kopf.zalando.org/parent.good"])
    later = json.loads(annotations["kopf.zalando.org/parent.later"])
    assert (good["success"], good["retries"], good["purpose"]) == (True, 1, "create")
    assert (later["success"], later["message"]) == (False, "wait")


@pytest.mark.parametrize(
    ("error", "options", "final", "kind"),
    [
        (kopf.PermanentError("x"), {}, True, kopf.PermanentError),
        (kopf.TemporaryError("x", delay=3), {}, False, kopf.TemporaryError),
        (kopf.TemporaryError("x"), {"retries": 1}, True, kopf.HandlerRetriesError),
        (kopf.TemporaryError("x"), {"timeout": 10}, True, kopf.HandlerTimeoutError),
        (ValueError("x"), {}, False, ValueError),
        (ValueError("x"), {"errors": kopf.ErrorsMode.PERMANENT}, True, ValueError),
        (ValueError("x"), {"errors": kopf.ErrorsMode.IGNORED}, True, type(None)),
    ],
)
def test_errors_become_outcomes(
    registry: kopf.OperatorRegistry, error: Exception, options: Any, final: bool, kind: type
) -> None:
    @kopf.on.create("kopfexamples", **options)
    async def fn(**_: Any) -> None:
        raise error

    (handler,) = registry._changing.get_all_handlers()
    outcome = invoke(handler, make_cause())
    assert outcome.final is final and isinstance(outcome.exception, kind)


def test_toolkits_outside_of_handlers_need_an_owner() -> None:
    def outside() -> None:
        with pytest.raises(LookupError):
            kopf.adopt({})
        with pytest.raises(LookupError):
            kopf.event({}, type="t", reason="r")  # type: ignore[arg-type]

    contextvars.Context().run(outside)


def test_events_follow_the_settings() -> None:
    queued: list[posting.K8sEvent] = []

    class Queue:
        def put_nowait(self, event: posting.K8sEvent, /) -> None:
            queued.append(event)

    settings = kopf.OperatorSettings()
    body = kopf.Body({"kind": "K", "metadata": {"name": "n"}})

    def inside() -> None:
        posting.settings_var.set(settings)
        posting.event_queue_var.set(Queue())
        kopf.info(body, reason="R", message="m")
        settings.posting.level = logging.ERROR
        kopf.warn(body, reason="Hidden")
        kopf.exception(body, exc=ValueError("v"))
        settings.posting.enabled = False
        kopf.event(body, type="T", reason="Hidden")

    contextvars.Context().run(inside)
    assert [(e.type, e.reason, e.message) for e in queued] == [
        ("Normal", "R", "m"),
        ("Error", "ValueError", "v"),
    ]
    assert queued[0].ref == {"kind": "K", "name": "n"}


@pytest.mark.parametrize(
    ("log_format", "prefix", "expected"),
    [
        (kopf.LogFormat.PLAIN, True, "[ns/n] hello 1"),
        (kopf.LogFormat.PLAIN, False, "hello 1"),
        ("%(levelname)s %(message)s", None, "INFO [ns/n] hello 1"),
    ],
)
def test_text_logs_have_prefixes(log_format: Any, prefix: Any, expected: str) -> None:
    assert _log(loggers.make_formatter(log_format, prefix)) == expected


def test_json_logs_refer_to_objects() -> None:
    line = json.loads(_log(loggers.make_formatter(kopf.LogFormat.JSON, None, "obj")))
    assert list(line) == ["message", "a", "timestamp", "obj", "severity"]
    assert line["message"] == "hello 1" and line["severity"] == "info"
    assert line["obj"]["namespace"] == "ns"


def _log(formatter: logging.Formatter) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    body = kopf.Body({"metadata": {"name": "n", "namespace": "ns"}})
    logger = kopf.ObjectLogger(body=body, settings=kopf.OperatorSettings())
    loggers.logger.addHandler(handler)
    level = loggers.logger.level
    loggers.logger.setLevel(logging.INFO)
    try:
        logger.info("hello %s", 1, extra={"a": 2})
    finally:
        loggers.logger.removeHandler(handler)
        loggers.logger.setLevel(level)
    return stream.getvalue().strip()


def test_stop_flags_work_in_coroutines_and_threads() -> None:
    from kopf._handlers.stoppers import DaemonStopper

    async def main() -> None:
        stopper = DaemonStopper()
        waited = await stopper.async_waiter.wait(0.01)
        assert not waited and waited is stopper.async_waiter
        stopper.set(kopf.DaemonStoppingReason.RESOURCE_DELETED)
        assert await stopper.async_waiter.wait() and stopper.sync_waiter.wait(0)
        assert stopper.async_waiter.reason == kopf.DaemonStoppingReason.RESOURCE_DELETED
        with pytest.raises(NotImplementedError):
            await stopper.async_waiter

    asyncio.run(main())
