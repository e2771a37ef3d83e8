"""All public names of Kopf are here, with the same signatures."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import pytest

import kopf

COMPAT = pathlib.Path(__file__).parents[1] / "compat"
KOPF: dict[str, Any] = json.loads((COMPAT / "kopf-1.45.2.json").read_text())


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("names", COMPAT / "names.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    described: dict[str, Any] = module.describe()
    return described


@pytest.mark.parametrize("name", sorted(KOPF))
def test_name_has_the_signature_of_kopf(name: str, ours: dict[str, Any]) -> None:
    assert ours[name]["signature"] == KOPF[name]["signature"]


@pytest.mark.parametrize("name", sorted(name for name in KOPF if KOPF[name]["members"]))
def test_class_has_the_members_of_kopf(name: str, ours: dict[str, Any]) -> None:
    theirs = KOPF[name]["members"]
    assert {member: ours[name]["members"].get(member, "absent") for member in theirs} == theirs


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("kopf._cogs.structs.bodies", "Body"),
        ("kopf._cogs.structs.patches", "Patch"),
        ("kopf._cogs.structs.dicts", "parse_field"),
        ("kopf._cogs.configs.configuration", "OperatorSettings"),
        ("kopf._core.actions.execution", "TemporaryError"),
        ("kopf._core.intents.registries", "OperatorRegistry"),
        ("kopf._core.engines.posting", "event"),
        ("kopf._kits.webhooks", "WebhookServer"),
    ],
)
def test_internal_names_lead_to_the_same_objects(path: str, name: str) -> None:
    module = importlib.import_module(path)
    assert getattr(kopf, name, getattr(module, name)) is getattr(module, name)
    assert module.__name__.startswith("kopf.") and module.__spec__ is not None
    assert module.__spec__.name == module.__name__


def test_values_survive_pickling_after_use_of_internal_names() -> None:
    import kopf._cogs.structs.diffs as diffs

    item = diffs.diff({"a": 1}, {"a": 2})[0]
    assert pickle.loads(pickle.dumps(item)) == item


def test_import_is_light() -> None:
    libraries = ["aiohttp", "kubernetes", "pykube", "yaml", "jsonpatch", "click", "cryptography"]
    heavy = [*libraries, "decimal", "pathlib", "urllib.parse"]
    code = f"import sys, kopf; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_name_of_the_host_needs_no_tables_of_unicode() -> None:
    code = "import sys; from kopf._run import identity; identity.get_descriptive_hostname(); "
    code += "print('unicodedata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_original_in_the_same_environment_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "kopf-1.45.2.dist-info").mkdir()
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import kopf"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip uninstall kopf kopf-rs" in done.stderr
