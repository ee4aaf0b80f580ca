"""The wheel works in an environment with the main dependencies only."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def run(*command: str | Path, **options) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dependencies(name: str, extras: frozenset[str] = frozenset()) -> Iterator[str]:
    """The requirements of an installed package, and theirs, without optional ones."""
    for text in distribution(name).requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in ("", *extras)):
            yield requirement.name
            yield from dependencies(requirement.name, frozenset(requirement.extras))


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """A clean environment: the built wheel, and links to its dependencies.

    Links replace the download of packages; everything else is as after ``pip install``.
    """
    folder = tmp_path_factory.mktemp("package")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    (sources,) = folder.glob("*.tar.gz")
    with tarfile.open(sources) as archive:
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert not top & {"run", "dist", ".venv", "site"}, "files of the user in the distribution"
    assert {"src", "tests", "README.md", "LICENSE"} <= top
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env")
    python = folder / "env" / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel
    )
    site = Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip())
    for name in sorted(set(dependencies("dcgst"))):
        for file in distribution(name).files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    return python.parent


def clean(environment: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "PATH": f"{environment}:/usr/bin:/bin", "OMP_NUM_THREADS": "1"}


def test_optional_packages_are_absent(environment, tmp_path):
    code = "import importlib.util as u; print([u.find_spec(m) for m in ('pytest', 'mkdocs')])"
    printed = run(environment / "python", "-c", code, cwd=tmp_path, env=clean(environment))
    assert printed.strip() == "[None, None]"


def test_fit_from_csv(environment, tmp_path):
    tables = [ROOT / "examples" / "data" / name for name in ("papers.csv", "papers_edges.csv")]
    options = ["--label", "topic", "--out", "run", "--replicas", "1", "--quiet"]
    run(environment / "dcgst", "fit", *tables, *options, cwd=tmp_path, env=clean(environment))
    with open(tmp_path / "run" / "predictions.csv", newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 300
    assert "<title>" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


def test_demo(environment, tmp_path):
    printed = run(
        environment / "dcgst",
        "demo",
        "--quiet",
        "--runs",
        "1",
        cwd=tmp_path,
        env=clean(environment),
    )
    assert "DC-GST" in printed
    assert "label propagation" in printed
    assert (tmp_path / "demo-run" / "report.html").exists()
