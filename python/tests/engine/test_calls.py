"""Handlers are called with what Kopf promises, and their results are stored."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import pickle
import threading

import pytest

import kopf

from .conftest import eventually

pytestmark = pytest.mark.asyncio
EX = ("kopf.dev", "v1", "kopfexamples")


async def test_results_of_async_and_sync_handlers_are_stored(examples, kopf_operator):
    threads = []

    @kopf.on.create(*EX, id="async_fn")
    async def async_fn(spec, **_):
        return {"doubled": spec["n"] * 2}

    @kopf.on.create(*EX, id="sync_fn")
    def sync_fn(**_):
        threads.append(threading.current_thread())
        return 5

    async with kopf_operator():
        examples.create(spec={"n": 2})
        status = await eventually(
            lambda: (s := examples.get().get("status", {})) and len(s) == 2 and s
        )
    assert status == {"async_fn": {"doubled": 4}, "sync_fn": 5}
    assert threads[0] is not threading.main_thread()


async def test_changes_of_a_field_are_narrowed(examples, kopf_operator):
    seen = []

    @kopf.on.field(*EX, field="spec.n", id="fn")
    async def fn(old, new, diff, **_):
        seen.append((old, new, list(diff)))

    async with kopf_operator():
        examples.create(spec={"n": 1})
        await eventually(lambda: len(seen) == 1)
        examples.patch({"spec": {"n": 2}})
        await eventually(lambda: len(seen) == 2)
    assert seen == [(None, 1, [("add", (), None, 1)]), (1, 2, [("change", (), 1, 2)])]


async def test_errors_are_logged_with_the_original_exception(examples, kopf_operator, caplog):
    caplog.set_level(logging.INFO)
    error = ValueError("boom")

    @kopf.on.create(*EX, errors=kopf.ErrorsMode.PERMANENT, id="fn")
    async def fn(**_):
        raise error

    async with kopf_operator():
        examples.create()
        record = await eventually(
            lambda: next((r for r in caplog.records if "boom" in r.getMessage()), None)
        )
    assert record.name == "kopf.objects"
    assert record.exc_info[1] is error
    text = "Handler 'fn' failed with an exception and will stop now: boom"
    assert record.getMessage() == text


async def test_temporary_errors_are_tried_again(examples, kopf_operator):
    retries = []

    @kopf.on.create(*EX, id="fn")
    async def fn(retry, **_):
        retries.append(retry)
        if retry < 2:
            raise kopf.TemporaryError("not yet", delay=0.01)

    async with kopf_operator():
        examples.create()
        await eventually(lambda: len(retries) == 3)
    assert retries == [0, 1, 2]


async def test_results_that_are_not_json_fail_with_a_message(examples, kopf_operator, caplog):
    caplog.set_level(logging.INFO)

    @kopf.on.create(*EX, id="fn")
    async def fn(**_):
        return object()

    async with kopf_operator():
        examples.create()
        await eventually(lambda: "is not JSON serializable" in caplog.text)
    assert "Handler 'fn' failed permanently" in caplog.text


async def test_sub_handlers_run_and_leave_no_progress(examples, kopf_operator):
    called = []

    @kopf.on.create(*EX, id="parent")
    async def parent(spec, **_):
        for field in spec["fields"]:

            @kopf.subhandler(id=field)
            async def sub(field=field, **_):
                called.append(field)
                return field.upper()

    async with kopf_operator():
        examples.create(spec={"fields": ["a", "b"]})
        await eventually(
            lambda: (
                "kopf.zalando.org/last-handled-configuration"
                in examples.get()["metadata"].get("annotations", {})
            )
        )
    obj = examples.get()
    assert called == ["a", "b"]
    assert obj["status"] == {"parent/a": "A", "parent/b": "B"}
    assert list(obj["metadata"]["annotations"]) == ["kopf.zalando.org/last-handled-configuration"]


async def test_memos_are_kept_per_object(examples, kopf_operator):
    seen = {}

    @kopf.on.event(*EX, id="fn")
    async def fn(name, memo, **_):
        memo.count = memo.get("count", 0) + 1
        seen[name] = (memo.count, memo.common)

    memo = kopf.Memo(common=[1])
    async with kopf_operator(memo=memo):
        examples.create("one")
        examples.create("two")
        await eventually(lambda: len(seen) == 2)
        examples.patch({"spec": {"a": 1}}, name="two")
        await eventually(lambda: seen["two"][0] == 2)
    assert seen["one"] == (1, memo.common)
    assert seen["two"][1] is memo.common
    assert "count" not in memo


async def test_patches_are_merged_and_functions_are_applied(examples, kopf_operator):
    @kopf.on.create(*EX, id="one")
    async def one(patch, **_):
        patch.spec["a"] = 1
        patch.fns.append(lambda body: body["spec"].setdefault("list", []).append("x"))

    @kopf.on.create(*EX, id="two")
    async def two(patch, **_):
        patch.metadata.labels["b"] = "2"

    async with kopf_operator():
        examples.create(spec={})
        obj = await eventually(
            lambda: (o := examples.get())["spec"].get("list") and o["metadata"].get("labels") and o
        )
    assert obj["spec"] == {"a": 1, "list": ["x"]}
    assert obj["metadata"]["labels"] == {"b": "2"}


async def test_indexes_have_any_keys_and_values(examples, kopf_operator):
    seen = {}

    @kopf.index(*EX, id="by_pair")
    async def by_pair(name, body, **_):
        return {(name, 1): body}

    @kopf.timer(*EX, interval=0.05, id="fn")
    async def fn(by_pair, **_):
        seen.update({key: list(values) for key, values in by_pair.items()})

    async with kopf_operator():
        examples.create("one")
        examples.create("two")
        await eventually(lambda: len(seen) == 2)
    assert set(seen) == {("one", 1), ("two", 1)}
    assert seen["one", 1][0]["metadata"]["name"] == "one"


class Aborted(BaseException):
    """Not an ``Exception``, as what several libraries stop their own work with."""


async def test_errors_that_are_no_exceptions_are_errors_of_the_handler(
    examples, kopf_operator, caplog
):
    tasks = []

    def make_task(loop, coro, **options):
        tasks.append(asyncio.Task(coro, loop=loop, **options))
        return tasks[-1]

    asyncio.get_running_loop().set_task_factory(make_task)

    @kopf.on.create(*EX, id="fn", backoff=0.01)
    async def fn(retry, **_):
        if retry == 0:
            raise Aborted("by a library")
        return retry

    async with kopf_operator():
        examples.create()
        await eventually(lambda: (examples.get().get("status") or {}).get("fn") == 1)
    assert "failed with an exception and will try again" in caplog.text
    assert "by a library" in caplog.text
    assert [e for t in tasks if not t.cancelled() and (e := t.exception())] == []


async def test_events_are_plain_dicts_as_decoded_from_json(examples, kopf_operator):
    seen = []

    @kopf.on.event(*EX, id="fn")
    async def fn(event, body, spec, **_):
        text = json.loads(json.dumps(event))
        event["object"]["spec"]["n"] = event["object"]["extra"] = 5
        seen.append((type(event["object"]), text, spec["n"], body["extra"]))

    async with kopf_operator():
        examples.create(spec={"n": 1})
        await eventually(lambda: seen)
    kind, text, *changed = seen[0]
    assert kind is dict and text["type"] in ("ADDED", None) and text["object"]["spec"] == {"n": 1}
    assert changed == [5, 5]


async def test_stores_of_indexes_are_live_and_the_same(examples, kopf_operator):
    kept = []

    @kopf.index(*EX, id="names")
    async def names(name, **_):
        return name

    @kopf.on.create(*EX, id="fn")
    async def fn(names, **_):
        assert names[None] is names[None] and names[None] == names[None]
        kept.append(names[None])

    async with kopf_operator():
        examples.create("one")
        await eventually(lambda: kept)
        (store,) = kept
        assert list(store) == ["one"] and store
        examples.create("two")
        await eventually(lambda: len(store) == 2 and "two" in store)
        examples.delete("one")
        examples.delete("two")
        await eventually(lambda: not store and list(store) == [] and repr(store) == "[]")


async def test_indexes_are_copied_and_sent_to_processes(examples, kopf_operator):
    seen = []

    @kopf.index(*EX, id="names")
    async def names(name, **_):
        return {(name, 1): [name]}

    @kopf.on.create(*EX, id="fn")
    async def fn(name, names, **_):
        copies = copy.deepcopy(names), pickle.loads(pickle.dumps(names)), copy.copy(names)
        seen.append((names, *copies, copy.deepcopy(names[name, 1])))

    async with kopf_operator():
        examples.create("one")
        await eventually(lambda: seen)
        names, *deep, shallow, store = seen[0]
        examples.create("two")
        await eventually(lambda: len(names) == 2)
        assert [list(index) for index in deep] == [[("one", 1)]] * 2
        assert [list(index["one", 1]) for index in deep] == [[["one"]]] * 2
        assert list(store) == [["one"]] and len(shallow) == 2
        assert isinstance(deep[0], kopf.Index) and isinstance(store, kopf.Store)
        assert next(iter(store)) is not next(iter(names["one", 1]))


async def test_daemons_get_their_cancellation_and_are_awaited(examples, kopf_operator):
    steps = []

    @kopf.daemon(*EX, cancellation_timeout=5, id="fn")
    async def fn(stopped, **_):
        steps.append("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            steps.append("cancelled")
            await asyncio.sleep(0.1)
            steps.append("ended")
            raise

    async with kopf_operator():
        examples.create()
        await eventually(lambda: steps and examples.get()["metadata"].get("finalizers"))
        examples.delete()
        await eventually(lambda: examples.get() is None)
        assert steps == ["started", "cancelled", "ended"]


async def test_cancelled_daemons_may_finish_their_work(examples, kopf_operator, caplog):
    started = []

    @kopf.daemon(*EX, labels={"on": "yes"}, cancellation_timeout=5, id="ends")
    async def ends(patch, **_):
        started.append(True)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        patch.spec["ended"] = True
        return "done"

    @kopf.daemon(*EX, labels={"on": "yes"}, cancellation_timeout=5, id="fails")
    async def fails(**_):
        started.append(True)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("at the end") from None

    @kopf.daemon(*EX, labels={"on": "yes"}, cancellation_timeout=5, id="escalates")
    async def escalates(**_):
        started.append(True)
        await asyncio.Event().wait()

    with caplog.at_level(logging.INFO, "kopf.objects"):
        async with kopf_operator():
            examples.create(metadata={"labels": {"on": "yes"}})
            await eventually(lambda: len(started) == 3)
            examples.patch({"metadata": {"labels": None}})
            await eventually(lambda: (examples.get().get("spec") or {}).get("ended"))
            await eventually(lambda: not examples.get()["metadata"].get("finalizers"))
    assert examples.get()["status"] == {"ends": "done"}
    assert "Daemon 'ends' succeeded." in caplog.messages
    failure = "Daemon 'fails' failed with an exception and will try again in 60 seconds: at the end"
    assert failure in caplog.messages
    assert caplog.messages.count("Daemon 'escalates' is cancelled. Will escalate.") == 1


async def test_bodies_of_daemons_are_live(examples, kopf_operator):
    seen = []

    @kopf.daemon(*EX, id="fn")
    async def fn(spec, stopped, **_):
        while not stopped:
            seen.append(spec.get("n"))
            await stopped.wait(0.01)

    async with kopf_operator():
        examples.create(spec={"n": 1})
        await eventually(lambda: seen)
        examples.patch({"spec": {"n": 2}})
        await eventually(lambda: seen[-1] == 2)


async def test_sync_daemons_are_asked_to_stop(examples, kopf_operator):
    reasons = []

    @kopf.daemon(*EX, id="fn")
    def fn(stopped, **_):
        stopped.wait(30)
        reasons.append(stopped.reason)

    async with kopf_operator():
        examples.create()
        await eventually(lambda: examples.get()["metadata"].get("finalizers"))
        examples.delete()
        await eventually(lambda: reasons)
        await eventually(lambda: examples.get() is None)
    assert kopf.DaemonStoppingReason.RESOURCE_DELETED in reasons[0]


async def test_nested_values_are_real_mutable_dicts(examples, kopf_operator):
    seen = []

    @kopf.on.event(*EX, id="fn")
    async def fn(body, spec, **_):
        body["spec"]["n"]["m"] = 2
        seen.append((spec["n"] is body["spec"]["n"], spec["n"], type(body["spec"])))

    async with kopf_operator():
        examples.create(spec={"n": {}})
        await eventually(lambda: seen)
    assert seen[0] == (True, {"m": 2}, dict)


async def test_daemons_see_their_flag_when_the_operator_exits(examples, kopf_operator):
    steps = []

    @kopf.daemon(*EX, id="fn")
    async def fn(stopped, **_):
        steps.append("started")
        try:
            await stopped.wait()
            steps.append(stopped.reason)
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise

    async with kopf_operator():
        examples.create()
        await eventually(lambda: steps and examples.get()["metadata"].get("finalizers"))
    assert steps[0] == "started"
    assert kopf.DaemonStoppingReason.OPERATOR_EXITING in steps[1]
    assert steps[2:] == []
