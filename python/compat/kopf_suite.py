"""Runs Kopf's own tests against this package.

    python compat/kopf_suite.py [--public-only] [pytest options]
    python compat/kopf_suite.py --e2e

The tests are in the sdist of Kopf, which is downloaded with pip to a temporary directory.
They need the packages of Kopf's group ``test``. With ``--e2e``, Kopf's examples are run instead,
on an embedded cluster; that needs kubectl.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

VERSION = "1.45.2"
HERE = pathlib.Path(__file__).parent


def fetch(directory: pathlib.Path) -> pathlib.Path:
    """Download the sdist, and unpack only its tests and examples: not the package itself."""
    root = directory / f"kopf-{VERSION}"
    if not (root / "tests").exists():
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        command += ["--no-binary", ":all:", "-d", str(directory), f"kopf=={VERSION}"]
        subprocess.run(command, check=True)
        with tarfile.open(directory / f"kopf-{VERSION}.tar.gz") as archive:
            wanted = ("tests", "examples", "peering.yaml", "pyproject.toml")
            members = [m for m in archive if m.name.partition("/")[2].startswith(wanted)]
            archive.extractall(directory, members)
    return root


def main() -> int:
    cache = os.environ.get("KOPF_SUITE_DIR")
    directory = pathlib.Path(cache or tempfile.mkdtemp(prefix="kopf-suite-"))
    root = fetch(directory)
    environment = dict(os.environ)
    paths = [str(HERE), str(HERE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    command = [sys.executable, "-m", "pytest", "-p", "suite_plugin"]
    if sys.argv[1:2] == ["--e2e"]:
        return run_e2e([*command, *sys.argv[2:]], root, environment)
    command += sys.argv[1:]
    if not any(not arg.startswith("-") for arg in sys.argv[1:]):
        command.append("tests")
    return subprocess.run(command, cwd=root, env=environment).returncode


def run_e2e(command: list[str], root: pathlib.Path, environment: dict[str, str]) -> int:
    """Run the examples of Kopf with its own tests of them."""
    sys.path.insert(0, str(HERE.parent))
    from kopf._engine.cluster import EmbeddedCluster

    command += ["--override-ini=addopts=", "--timeout=100"]
    codes = []
    with EmbeddedCluster() as cluster:
        path = root / "kubeconfig.yaml"
        path.write_text(cluster.kubeconfig_yaml)
        environment["KUBECONFIG"] = str(path)
        for targets in (["--only-e2e", "tests/e2e"], ["examples"]):
            codes.append(subprocess.run([*command, *targets], cwd=root, env=environment).returncode)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
