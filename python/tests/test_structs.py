"""Views, patches, diffs, resources, selectors, settings, storages."""

from __future__ import annotations

import concurrent.futures
import json
from typing import Any

import pytest

import kopf
from kopf._settings import configuration
from kopf._settings.conventions import StorageKeyFormingConvention
from kopf._settings.native import describe_diffbase, describe_progress
from kopf._structs import dicts, diffs
from kopf._structs.references import Selector, match_namespace

PODS = kopf.Resource("", "v1", "pods", kind="Pod", singular="pod", shortcuts=frozenset({"po"}))
KEXES = kopf.Resource("kopf.dev", "v1", "kopfexamples", kind="KopfExample", namespaced=True)
EVENTS = kopf.Resource("", "v1", "events", kind="Event")


def test_views_are_live_and_absent_sections_are_empty() -> None:
    body = kopf.Body({"metadata": {"name": "a"}})
    spec, labels = body.spec, body.meta.labels
    assert dict(spec) == {} and dict(labels) == {} and body.meta.uid is None
    body._replace_with({"spec": {"x": [1]}, "metadata": {"labels": {"l": "v"}}})
    assert spec["x"] == [1] and labels["l"] == "v" and repr(spec) == "{'x': [1]}"
    with pytest.raises(KeyError):
        _ = spec["absent"]


def test_nested_values_are_the_real_ones() -> None:
    raw: dict[str, Any] = {"spec": {"list": []}}
    kopf.Body(raw).spec["list"].append(1)
    assert raw["spec"]["list"] == [1]


def test_memo_has_attributes_and_keys() -> None:
    memo = kopf.Memo(a=1)
    memo.b = 2
    assert (memo.a, memo["b"]) == (1, 2)
    del memo.a
    with pytest.raises(AttributeError):
        _ = memo.a


def test_patch_creates_sections_and_is_true_with_functions_only() -> None:
    patch = kopf.Patch()
    assert not patch
    patch.meta.annotations["a"] = "b"
    patch.status["x"] = 1
    assert patch == {"metadata": {"annotations": {"a": "b"}}, "status": {"x": 1}}
    patch.clear()
    patch.fns.append(lambda body: None)
    assert patch and "fns=" in repr(patch)


def test_sections_cannot_be_replaced_as_attributes() -> None:
    with pytest.raises(AttributeError):
        kopf.Patch().status = {"a": 1}  # type: ignore[misc,assignment]
    body = kopf.Body({})
    assert body.spec is body.spec and body.meta is body.metadata


def test_patch_becomes_json_operations_without_useless_ones() -> None:
    body = kopf.Body({"spec": {"x": 1, "y": 2, "items": [1]}})
    patch = kopf.Patch({"spec": {"x": 1, "y": None, "z": None}}, body=body)
    patch.fns.append(lambda raw: raw["spec"]["items"].append(3))
    assert patch.as_json_patch() == [
        {"op": "remove", "path": "/spec/y"},
        {"op": "add", "path": "/spec/items/1", "value": 3},
    ]
    with pytest.raises(ValueError, match="original body"):
        kopf.Patch({"a": 1}).as_json_patch()


def test_diffs_are_tuples_and_reducible() -> None:
    diff = diffs.diff({"spec": {"x": 1, "y": {"z": 1}}}, {"spec": {"y": {"z": 2}, "w": 0}})
    assert set(diff) == {
        ("add", ("spec", "w"), None, 0),
        ("remove", ("spec", "x"), 1, None),
        ("change", ("spec", "y", "z"), 1, 2),
    }
    assert diffs.reduce(diff, ("spec", "y")) == (("change", ("z",), 1, 2),)
    assert diffs.reduce(diffs.diff(None, {"a": {"b": 1}}), ("a", "b")) == (("add", (), None, 1),)
    assert diff[0].op in ("add", "change", "remove") and hash(diff) is not None


def test_removal_of_a_field_removes_empty_parents_only() -> None:
    d: dict[str, Any] = {"a": {"b": {"c": 1}}, "x": {"y": 1, "z": 2}, "e": {}}
    dicts.remove(d, "a.b.c")
    dicts.remove(d, "x.y")
    dicts.remove(d, "e.f")
    assert d == {"x": {"z": 2}}
    with pytest.raises(TypeError):
        dicts.remove({"s": "text"}, "s.field")


@pytest.mark.parametrize(
    ("args", "kwargs", "found"),
    [
        (("pods",), {}, {PODS}),
        (("po",), {}, {PODS}),
        (("v1", "Pod"), {}, {PODS}),
        (("pods.v1",), {}, {PODS}),
        (("kopfexamples.kopf.dev",), {}, {KEXES}),
        (("kopfexamples.v1.kopf.dev",), {}, {KEXES}),
        (("kopf.dev/v1", "kopfexamples"), {}, {KEXES}),
        (("kopf.dev", "v1", "kopfexamples"), {}, {KEXES}),
        ((kopf.EVERYTHING,), {}, {PODS, KEXES}),
        (("kopf.dev", kopf.EVERYTHING), {}, {KEXES}),
        ((lambda resource: True,), {}, {PODS, KEXES}),
        ((), {"kind": "KopfExample"}, {KEXES}),
        (("kopf.dev", "v2", "kopfexamples"), {}, set()),
        (("events",), {}, {EVENTS}),
    ],
)
def test_selectors_select(args: Any, kwargs: Any, found: set[kopf.Resource]) -> None:
    assert Selector(*args, **kwargs).select({PODS, KEXES, EVENTS}) == found


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), (("a", "b", "c", "d"), {}), (("pods",), {"kind": "Pod"}), ((), {"plural": ""})],
)
def test_unclear_selectors_are_refused(args: Any, kwargs: Any) -> None:
    with pytest.raises(TypeError):
        Selector(*args, **kwargs)


def test_resource_urls() -> None:
    assert KEXES.get_url(namespace="ns", name="n", subresource="status") == (
        "/apis/kopf.dev/v1/namespaces/ns/kopfexamples/n/status"
    )
    assert PODS.get_url(server="https://s/", params={"watch": "true"}) == (
        "https://s/api/v1/pods?watch=true"
    )
    assert repr(KEXES) == "kopfexamples.v1.kopf.dev" and repr(PODS) == "pods.v1"
    with pytest.raises(ValueError):
        KEXES.get_url(name="n")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("myapp-test", True), ("myapp-pr-1", False), ("myapp-pr-123", True), ("x-pr-123", False)],
)
def test_namespaces_match_globs(name: Any, expected: bool) -> None:
    assert match_namespace(name, "myapp-*, !*-pr-*, *pr-123") is expected


KEYS = [
    ("create_fn/sub1", "create_fn.sub1", None),
    ("my.<locals>.fn", "my._locals_.fn", None),
    ("x" * 46, "x" * 46, None),
    ("x" * 47, "x" * 47, "x" * 39 + "-xRCOAQ"),
    ("x" * 64, "x" * 56 + "-SItAqA", "x" * 39 + "-SItAqA"),
    ("handler/" + "a/b<c>" * 12, "handler." + "a.b_c_" * 8 + "-c9SdKA",
     "handler." + "a.b_c_" * 5 + "a-oQpDTA"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "v2", "v1"), KEYS)
def test_names_of_annotations_are_those_of_kopf(key: str, v2: str, v1: str | None) -> None:
    convention = StorageKeyFormingConvention(prefix="kopf.zalando.org", v1=True)
    wanted = [f"kopf.zalando.org/{name}" for name in (v2, v1) if name]
    assert list(convention.make_keys(key)) == wanted


def test_progress_is_stored_fetched_and_purged() -> None:
    storage = kopf.SmartProgressStorage()
    record = kopf.ProgressRecord(started="T", retries=1, success=False, message=None)
    patch = kopf.Patch()
    storage.store(key=kopf.HandlerId("fn"), record=record, body=kopf.Body({}), patch=patch)
    assert patch == {
        "metadata": {
            "annotations": {"kopf.zalando.org/fn": '{"started":"T","retries":1,"success":false}'}
        }
    }
    body = kopf.Body(dict(patch))
    fetched = storage.fetch(key=kopf.HandlerId("fn"), body=body)
    assert fetched == {"started": "T", "retries": 1, "success": False}
    purge = kopf.Patch()
    storage.purge(key=kopf.HandlerId("fn"), body=body, patch=purge)
    assert purge == {"metadata": {"annotations": {"kopf.zalando.org/fn": None}}}


def test_foreign_prefixes_are_marked() -> None:
    patch = kopf.Patch()
    storage = kopf.AnnotationsProgressStorage(prefix="example.com")
    storage.touch(body=kopf.Body({}), patch=patch, value="now")
    assert patch["metadata"]["annotations"] == {
        "example.com/touch-dummy": "now",
        "example.com/kopf-managed": "yes",
    }


def test_essence_is_built_and_stored_as_kopf_does() -> None:
    body = kopf.Body(
        {
            "apiVersion": "v1",
            "kind": "K",
            "spec": {"x": 1},
            "status": {"phase": "a", "other": 1},
            "metadata": {
                "name": "n",
                "labels": {"l": "v"},
                "annotations": {
                    "mine": "1",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}",
                    "kopf.zalando.org/last-handled-configuration": "{}",
                    "other.dev/kopf-managed": "yes",
                    "other.dev/state": "x",
                },
            },
        }
    )
    storage = kopf.AnnotationsDiffBaseStorage(ignored_fields=["spec.y"])
    essence = storage.build(body=body, extra_fields=["status.phase"])
    assert essence == {
        "spec": {"x": 1},
        "metadata": {"labels": {"l": "v"}, "annotations": {"mine": "1"}},
        "status": {"phase": "a"},
    }
    patch = kopf.Patch()
    storage.store(body=body, patch=patch, essence=essence)
    stored = patch.metadata.annotations["kopf.zalando.org/last-handled-configuration"]
    assert stored == json.dumps(essence, separators=(",", ":")) + "\n"


def test_stock_storages_are_described_and_subclasses_are_not() -> None:
    class Mine(kopf.AnnotationsProgressStorage):
        pass

    settings = kopf.OperatorSettings()
    assert (describe_progress(settings.persistence.progress_storage) or {})["type"] == "smart"
    assert (describe_diffbase(settings.persistence.diffbase_storage) or {})["type"] == "annotations"
    assert describe_progress(Mine()) is None
    assert describe_progress(kopf.MultiProgressStorage([Mine()])) is None


def test_settings_are_plain_printable_and_checked_only_where_kopf_does() -> None:
    settings = kopf.OperatorSettings()
    assert "finalizer='kopf.zalando.org/KopfFinalizerMarker'" in repr(settings)
    settings.execution.max_workers = 3
    executor = settings.execution.executor
    assert isinstance(executor, concurrent.futures.ThreadPoolExecutor)
    assert executor._max_workers == 3
    with pytest.raises(ValueError):
        settings.execution.max_workers = 0
    with pytest.warns(DeprecationWarning) as noted:
        assert settings.batching is settings.queueing
    # In a module of the package, as in Kopf: by default, Python shows those of `__main__` only.
    assert noted[0].filename == configuration.__file__
    settings.peering.namespaced = True
    assert settings.peering.clusterwide is False
    settings.watching.label_selectors["kopf.dev", "kopfexamples"] = "a=b"
    assert settings.watching.label_selectors.collect(KEXES) == ["a=b"]
