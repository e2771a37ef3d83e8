"""Desired children and observers of children."""

from __future__ import annotations

from typing import Any

import pytest

import kopf
from tests.engine.conftest import eventually

pytestmark = pytest.mark.asyncio

MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def ready(examples: Any) -> Any:
    conditions = (examples.get() or {}).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == "Ready"), None)


def get(cluster: Any, name: str) -> Any:
    found = cluster.request("GET", MAPS)["items"]
    return next((it for it in found if it["metadata"]["name"] == name), None)


async def test_desired_children_are_applied_repaired_and_pruned(
    kopf_cluster: Any, kopf_operator: Any, examples: Any
) -> None:
    @kopf.desired("kopfexamples", children=["configmaps"])
    def pages(spec: Any, **_: Any) -> list[dict[str, Any]]:
        return [config(f"page-{number}", text="hello") for number in range(spec["pages"])]

    async with kopf_operator():
        made = examples.create(spec={"pages": 2})
        await eventually(lambda: (ready(examples) or {}).get("reason") == "ChildrenReady")
        page = get(kopf_cluster, "page-1")
        assert page["metadata"]["labels"]["kopf.dev/owner"] == made["metadata"]["uid"]
        assert page["metadata"]["annotations"]["kopf.dev/handler"].endswith("pages")
        assert page["metadata"]["ownerReferences"][0]["name"] == "one"

        changed = {"data": {"text": "edited"}}
        kopf_cluster.request("PATCH", f"{MAPS}/page-1", changed, content_type=MERGE)
        await eventually(lambda: get(kopf_cluster, "page-1")["data"] == {"text": "hello"})
        kopf_cluster.request("DELETE", f"{MAPS}/page-0")
        await eventually(lambda: get(kopf_cluster, "page-0"))
        examples.patch({"spec": {"pages": 1}})
        await eventually(lambda: get(kopf_cluster, "page-1") is None)
        assert get(kopf_cluster, "page-0")


async def test_failures_of_desired_functions_are_in_the_condition(
    kopf_operator: Any, examples: Any
) -> None:
    @kopf.desired("kopfexamples", children=["configmaps"])
    async def pages(spec: Any, **_: Any) -> list[dict[str, Any]]:
        if "pages" not in spec:
            raise kopf.PermanentError("there are no pages")
        return [config("page")]

    async with kopf_operator():
        examples.create(spec={})
        await eventually(lambda: (ready(examples) or {}).get("reason") == "HandlerFailed")
        assert ready(examples)["message"] == "there are no pages"
        examples.patch({"spec": {"pages": 1}})
        await eventually(lambda: (ready(examples) or {}).get("reason") == "ChildrenReady")


async def test_desired_functions_get_no_patch_and_a_wrong_child_is_reported(
    kopf_operator: Any, examples: Any
) -> None:
    seen: list[str] = []

    @kopf.desired("kopfexamples", children=["configmaps"])
    def pages(**kwargs: Any) -> list[dict[str, Any]]:
        seen.extend(kwargs)
        return [{"apiVersion": "v1", "kind": "Secret"}]

    async with kopf_operator():
        examples.create(spec={})
        await eventually(lambda: (ready(examples) or {}).get("reason") == "HandlerFailed")
        assert "Secret" in ready(examples)["message"]
    assert "patch" not in seen
    assert {"spec", "meta", "owned", "memo", "logger", "retry"} <= set(seen)


async def test_observers_are_called_when_children_change(
    kopf_cluster: Any, kopf_operator: Any, examples: Any
) -> None:
    @kopf.observe("kopfexamples", children=["configmaps"])
    async def count(owned: Any, patch: Any, **_: Any) -> None:
        names = [child.meta["name"] for child in owned["configmaps"]]
        patch.status["names"] = names

    def names() -> Any:
        return examples.get().get("status", {}).get("names")

    async with kopf_operator():
        uid = examples.create(spec={})["metadata"]["uid"]
        await eventually(lambda: names() == [])
        child = config("b")
        child["metadata"]["labels"] = {"kopf.dev/owner": uid}
        kopf_cluster.request("POST", MAPS, child)
        await eventually(lambda: names() == ["b"])
        child["metadata"]["name"] = "a"
        kopf_cluster.request("POST", MAPS, child)
        await eventually(lambda: names() == ["a", "b"])
        kopf_cluster.request("DELETE", f"{MAPS}/b")
        await eventually(lambda: names() == ["a"])


async def test_other_handlers_look_at_children_that_they_declare(
    kopf_cluster: Any, kopf_operator: Any, examples: Any
) -> None:
    @kopf.desired("kopfexamples", children=["configmaps"])
    def pages(**_: Any) -> list[dict[str, Any]]:
        return [config("page")]

    @kopf.on.update("kopfexamples", id="tell")
    @kopf.children("configmaps")
    def tell(owned: Any, **_: Any) -> int:
        with pytest.raises(KeyError, match="only at 'configmaps'"):
            owned["pods"]
        return len(owned["configmaps"])

    async with kopf_operator():
        examples.create(spec={})
        await eventually(lambda: get(kopf_cluster, "page"))
        await eventually(lambda: ready(examples))
        examples.patch({"spec": {"a": 1}})
        await eventually(lambda: examples.get()["status"].get("tell") == 1)


async def test_children_must_be_named() -> None:
    with pytest.raises(TypeError, match="say which kinds of children"):
        kopf.desired("kopfexamples", children=[])(lambda **_: [])
    with pytest.raises(TypeError, match="say which kinds of children"):
        kopf.observe("kopfexamples", children="pods")(lambda **_: None)
    with pytest.raises(TypeError, match="@kopf.resource"):
        kopf.observe("kopfexamples", children=[dict])(lambda **_: None)


async def test_invalid_rights_are_refused_at_the_start(kopf_operator: Any) -> None:
    @kopf.desired("kopfexamples", id="pages", children=["roles"], grants=["pods"])
    def pages(**_: Any) -> list[dict[str, Any]]:
        return []

    with pytest.raises(ValueError, match="'pages': a need is verbs and a resource, not 'pods'"):
        async with kopf_operator():
            pass
