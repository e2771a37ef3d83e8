"""Typed resources: definitions from classes, and handlers that get instances."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import sys
from typing import Annotated, Any, Literal

import pytest

import kopf
from kopf._engine import declaring
from kopf._models.conversion import decode, encode
from kopf._models.schemas import schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Page:
    path: str
    weight: float = 1.0


@dataclasses.dataclass
class SiteSpec:
    """What a site has."""

    pages: list[Page]
    replicas: Annotated[int, {"minimum": 1}] = 1
    colour: Colour = Colour.RED
    mode: Literal["fast", "slow"] = "fast"
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    until: datetime.datetime | None = None
    port: int | str = 80
    extra: Any = None
    min_size: int = dataclasses.field(default=0, metadata={"alias": "minSize"})


@dataclasses.dataclass
class SiteStatus:
    ready: bool = False
    pages: list[str] = dataclasses.field(default_factory=list)


@kopf.resource("example.com", "v1", shortcuts=["st"])
class Site:
    spec: SiteSpec
    status: SiteStatus | None


def schema(cls: Any) -> dict[str, Any]:
    [version] = cls.__kopf_resource__.definition()["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return found


def test_dataclasses_become_structural_schemas() -> None:
    assert schema(Site)["required"] == ["spec"]
    spec = schema(Site)["properties"]["spec"]
    assert spec["required"] == ["pages"] and spec["description"] == "What a site has."
    properties = spec["properties"]
    assert properties["pages"]["items"]["properties"]["path"] == {"type": "string"}
    assert properties["replicas"] == {
        "type": "integer",
        "format": "int64",
        "minimum": 1,
        "default": 1,
    }
    assert properties["colour"] == {"type": "string", "enum": ["red", "blue"], "default": "red"}
    assert properties["labels"]["additionalProperties"] == {"type": "string"}
    assert properties["until"] == {"type": "string", "format": "date-time", "nullable": True}
    assert properties["port"] == {"x-kubernetes-int-or-string": True, "default": 80}
    assert properties["extra"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert "minSize" in properties
    status = schema(Site)["properties"]["status"]
    assert status["x-kubernetes-preserve-unknown-fields"] is True
    assert status["properties"]["ready"] == {"type": "boolean"}


def test_names_are_guessed_from_the_class() -> None:
    definition = Site.__kopf_resource__.definition()  # type: ignore[attr-defined]
    assert definition["metadata"]["name"] == "sites.example.com"
    names = {"plural": "sites", "singular": "site", "kind": "Site", "shortNames": ["st"]}
    assert definition["spec"]["names"] == names


def test_objects_become_instances_and_come_back() -> None:
    raw = {
        "pages": [{"path": "/"}],
        "colour": "blue",
        "until": "2026-01-02T03:04:05Z",
        "minSize": 3,
        "unknown": 1,
    }
    spec = decode(SiteSpec, raw)
    assert spec.pages == [Page("/")] and spec.colour is Colour.BLUE and spec.min_size == 3
    assert spec.until == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    assert decode(SiteSpec, encode(spec)) == spec
    assert encode(spec)["until"] == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "pages is missing"),
        ({"pages": [{"path": 1}]}, r"pages\[0\].path: 1 is not a text"),
        ({"pages": {}}, "pages: {} is not a list"),
        ({"pages": [], "replicas": "many"}, "replicas: 'many' is not a whole number"),
        ({"pages": [], "colour": "pink"}, "colour: 'pink' is not a valid Colour"),
        ({"pages": [], "mode": "off"}, "mode: 'off' is not one of 'fast', 'slow'"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(raw: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(SiteSpec, raw)


@dataclasses.dataclass
class Tree:
    branches: list[Tree]


@pytest.mark.parametrize(
    ("tp", "message"),
    [
        (complex, "Place: the type complex cannot be in a schema"),
        (dict[int, str], "the keys of objects are texts, not int"),
        (Literal[1, "a"], "all choices must be texts, or all numbers"),
        (Tree, "Tree contains itself"),
    ],
)
def test_types_without_a_schema_are_refused(tp: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        schema_of(tp, "Place")


def test_classes_that_are_no_resources_are_refused() -> None:
    with pytest.raises(TypeError, match="Bare is not a resource: it has no annotated `spec`"):

        @kopf.resource("example.com", "v1")
        class Bare:
            pass

    with pytest.raises(TypeError, match="Odd.spec: int is neither a dataclass nor a model"):

        @kopf.resource("example.com", "v1")
        class Odd:
            spec: int

    with pytest.raises(TypeError, match="Lost: an annotation cannot be resolved.*Nowhere"):

        @kopf.resource("example.com", "v1")
        class Lost:
            spec: Nowhere  # type: ignore[name-defined]  # noqa: F821


def collect(registry: kopf.OperatorRegistry) -> Any:
    return declaring.collect_handlers(registry)[-1]


def test_annotations_that_do_not_fit_the_class_are_refused() -> None:
    registry = kopf.OperatorRegistry()

    @kopf.on.create(Site, id="create", registry=registry)
    def create(spec: Page, **_: Any) -> None: ...

    message = "Handler 'create': the parameter 'spec' is annotated with Page, but the spec of Site"
    with pytest.raises(TypeError, match=f"{message} is SiteSpec"):
        collect(registry)

    registry = kopf.OperatorRegistry()

    @kopf.on.create(Site, id="create", registry=registry)
    def other(spec: Nowhere, **_: Any) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="annotation 'Nowhere' of 'spec' cannot be resolved"):
        collect(registry)


def test_annotations_of_kopf_are_left_alone() -> None:
    registry = kopf.OperatorRegistry()

    @kopf.on.create("sites", registry=registry)
    def create(spec: kopf.Spec, status: Absent, **_: Any) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert collect(registry).fn is create


def test_handlers_get_instances_and_their_status_is_written() -> None:
    registry = kopf.OperatorRegistry()

    @kopf.on.create(Site, registry=registry)
    def create(spec: SiteSpec, status: SiteStatus, **_: Any) -> Page:
        status.pages = [page.path for page in spec.pages]
        return spec.pages[0]

    handler = collect(registry)
    assert collect(registry).fn is handler.fn, "the same function is always the same"
    patch = kopf.Patch()
    kwargs = {"spec": {"pages": [{"path": "/"}]}, "status": {}, "patch": patch}
    assert handler.fn(**kwargs) == {"path": "/", "weight": 1.0}
    assert patch == {"status": {"pages": ["/"]}}
    with pytest.raises(
        kopf.PermanentError, match="The spec does not fit SiteSpec: pages is missing"
    ):
        handler.fn(spec={}, status={}, patch=patch)


def test_bodies_and_old_and_new_states_are_instances_of_the_resource() -> None:
    registry = kopf.OperatorRegistry()
    seen: list[Any] = []

    @kopf.on.update(Site, registry=registry)
    def update(body: Site, old: Site | None, new: Site, spec: SiteSpec, **_: Any) -> None:
        assert body.status is not None and body.spec is spec
        body.status.ready = True
        seen.append((body.metadata.name, body.spec.replicas))  # type: ignore[attr-defined]
        seen.append((old and old.spec.replicas, new.spec.replicas, type(new)))
        seen.append(new.metadata.labels["a"])  # type: ignore[attr-defined]

    handler = collect(registry)
    patch = kopf.Patch()
    spec = {"pages": [], "replicas": 2}
    body = kopf.Body({"metadata": {"name": "one"}, "spec": spec, "status": {"ready": False}})
    old = {"spec": {"pages": [], "replicas": 1}}
    new = {"spec": spec, "metadata": {"labels": {"a": "b"}}}
    handler.fn(body=body, spec=body.spec, old=old, new=new, patch=patch)
    assert seen == [("one", 2), (1, 2, Site), "b"]
    assert patch == {"status": {"ready": True}}
    handler.fn(body=body, spec=body.spec, old=None, new=new, patch=patch)
    assert seen[4] == (None, 2, Site)
    with pytest.raises(
        kopf.PermanentError, match="The spec does not fit SiteSpec: pages is missing"
    ):
        handler.fn(body=body, spec=body.spec, old={"spec": {}}, new=new, patch=patch)


def test_old_and_new_of_a_field_are_instances_of_its_model() -> None:
    registry = kopf.OperatorRegistry()
    seen: list[Any] = []

    @kopf.on.field(Site, field="spec", registry=registry)
    def section(old: SiteSpec | None, new: SiteSpec, **_: Any) -> None:
        seen.append((old, new.replicas))

    collect(registry).fn(old=None, new={"pages": [], "replicas": 3})
    assert seen == [(None, 3)]

    @kopf.on.field(Site, field="spec.first", registry=registry)
    def deep(new: Page, **_: Any) -> None:
        seen.append(new)

    collect(registry).fn(old=None, new={"path": "/"})
    assert seen[1] == Page("/")


@pytest.mark.parametrize(
    ("field", "annotation", "message"),
    [
        (None, SiteSpec, "SiteSpec, but the object is Site"),
        ("spec", Site, "Site, but the spec of Site is SiteSpec"),
        ("spec.first", Site, "Site, but spec.first is not the whole object"),
        ("metadata", Page, "Page, but the metadata of Site has no class"),
    ],
)
def test_states_with_the_class_of_something_else_are_refused(
    field: Any, annotation: Any, message: str
) -> None:
    registry = kopf.OperatorRegistry()

    def update(new: Any, **_: Any) -> None: ...

    update.__annotations__["new"] = annotation
    kopf.on.update(Site, field=field, registry=registry)(update)
    with pytest.raises(TypeError, match=f"the parameter 'new' is annotated with {message}"):
        collect(registry)


def test_the_class_of_a_resource_may_be_a_model_itself() -> None:
    @kopf.resource("example.com", "v1")
    @dataclasses.dataclass
    class Whole:
        spec: SiteSpec
        metadata: dict[str, Any]
        status: SiteStatus = dataclasses.field(default_factory=SiteStatus)

    registry = kopf.OperatorRegistry()

    @kopf.on.create(Whole, registry=registry)
    def create(body: Whole, **_: Any) -> None:
        body.status.pages = [body.metadata["name"]]

    patch = kopf.Patch()
    body = kopf.Body({"metadata": {"name": "one"}, "spec": {"pages": []}})
    collect(registry).fn(body=body, patch=patch)
    assert patch == {"status": {"pages": ["one"]}}


def test_annotations_of_operators_without_classes_change_nothing() -> None:
    registry = kopf.OperatorRegistry()

    @kopf.on.update("sites", registry=registry)
    def update(spec: SiteSpec, old: Page, body: Site, **_: Any) -> None: ...

    assert collect(registry).fn is update


def test_models_of_pydantic_become_schemas_and_instances() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Part(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        name: str

    class Spec(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        parts: list[Part]
        size: int = pydantic.Field(default=1, gt=0, alias="theSize")
        note: str | None = None
        port: int | str = 80

    globals()["Part"] = Part  # annotations of this module are texts
    Spec.model_rebuild(_types_namespace={"Part": Part, **globals()})
    found = schema_of(Spec, "Spec")
    assert found["required"] == ["parts"]
    assert found["properties"]["parts"]["items"]["properties"]["name"] == {"type": "string"}
    size = {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "default": 1}
    assert found["properties"]["theSize"] == size
    assert found["properties"]["note"] == {"type": "string", "nullable": True}
    assert found["properties"]["port"] == {"x-kubernetes-int-or-string": True, "default": 80}
    spec = decode(Spec, {"parts": [{"name": "a"}], "theSize": 3})
    assert (spec.parts[0].name, spec.size) == ("a", 3)
    assert encode(spec)["theSize"] == 3
    with pytest.raises(ValueError, match="theSize"):
        decode(Spec, {"parts": [], "theSize": 0})


def test_models_of_msgspec_become_schemas_and_instances() -> None:
    msgspec = pytest.importorskip("msgspec")
    Part = msgspec.defstruct("Part", [("name", str)])
    Spec = msgspec.defstruct(
        "Spec",
        [
            ("parts", list[Part]),
            ("size", Annotated[int, msgspec.Meta(gt=0)], 1),
            ("note", str | None, None),
            ("tags", dict[str, str], msgspec.field(default_factory=dict)),
        ],
    )
    found = schema_of(Spec, "Spec")
    assert found["required"] == ["parts"]
    assert found["properties"]["parts"]["items"]["properties"]["name"] == {"type": "string"}
    size = {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "default": 1}
    assert found["properties"]["size"] == size
    assert found["properties"]["note"] == {"type": "string", "nullable": True}
    assert found["properties"]["tags"]["additionalProperties"] == {"type": "string"}
    spec = decode(Spec, {"parts": [{"name": "a"}], "size": 3})
    assert (spec.parts[0].name, spec.size) == ("a", 3)
    assert encode(spec)["size"] == 3
    with pytest.raises(ValueError, match="size"):
        decode(Spec, {"parts": [], "size": 0})


def test_libraries_are_optional() -> None:
    assert sys.modules["kopf"]  # imported at the top, without any of them
    import subprocess

    code = (
        "import sys; sys.modules.update(pydantic=None, msgspec=None)\n"
        "import dataclasses, kopf\n"
        "@dataclasses.dataclass\nclass Spec: size: int = 1\n"
        "@kopf.resource('example.com', 'v1')\nclass Thing: spec: Spec\n"
        "print(Thing.__kopf_resource__.plural)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "things", done.stderr


def test_scripts_with_postponed_annotations_can_be_run_by_runpy(tmp_path: Any) -> None:
    import runpy

    script = tmp_path / "script.py"
    script.write_text(
        "from __future__ import annotations\n"
        "import dataclasses, kopf\n"
        "@dataclasses.dataclass\nclass Part:\n    name: str\n"
        "@dataclasses.dataclass\nclass Spec:\n    parts: list[Part]\n"
        "@kopf.resource('example.com', 'v1')\nclass Thing:\n    spec: Spec\n"
    )
    names = runpy.run_path(str(script))
    assert decode(names["Spec"], {"parts": [{"name": "a"}]}).parts[0].name == "a"
