"""The example of the book works."""

from __future__ import annotations

import asyncio
import concurrent.futures
import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "src" / "python.md"


@pytest.mark.asyncio
async def test_the_example_of_the_book_works(kopf_cluster, kopf_registry, kopf_operator):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [code] = [block for block in blocks if "test_objects_get_a_status" in block]
    names: dict = {}
    exec(compile(code, str(PAGE), "exec"), names)
    test = names["test_objects_get_a_status"]
    await asyncio.wait_for(test(kopf_cluster, kopf_registry, kopf_operator), 10)


def test_a_cluster_is_used_from_many_threads(kopf_cluster):
    path = "/api/v1/namespaces/default/configmaps"

    def create(number):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}"}}
        return kopf_cluster.request("POST", path, body)["metadata"]["name"]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        names = set(pool.map(create, range(100)))
    assert len(names) == 100
