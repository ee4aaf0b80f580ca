"""Differences between the graph of a fit and another one."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from dcgst import GCN, fit, read
from dcgst.runs.apply import mean_difference, spread_ratio
from tests.cli.helpers import dcgst

COUNT = 400


def write(folder, *, seed=0, city=("Rome", "Oslo"), size=0.0, missing=0.0, degree=4):
    """Tables with a category and a number; the options make them differ from the defaults."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    lines = ["id,city,size,label"]
    for i in range(COUNT):
        value = "" if rng.random() < missing else f"{rng.normal() + size:.3f}"
        lines.append(f"n{i},{city[rng.integers(2)]},{value},{'ab'[i % 2] if i < 20 else ''}")
    (folder / "nodes.csv").write_text("\n".join(lines))
    ends = rng.integers(0, COUNT, (COUNT * degree // 2, 2))
    rows = [f"n{i},n{j}" for i, j in ends if i != j]
    (folder / "edges.csv").write_text("\n".join(["source,target", *rows]))
    return folder / "nodes.csv", folder / "edges.csv"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift")
    return fit(read(*write(folder / "fit")), folder / "run", GCN(epochs=5, hidden=4))


def differences(run, *tables) -> str:
    return "; ".join(str(drift) for drift in run.predict_other(*tables).drift)


def test_another_sample_of_the_same_kind_is_no_drift(run, tmp_path):
    for seed in range(1, 6):
        assert differences(run, *write(tmp_path / "same", seed=seed)) == ""


def test_each_difference_is_named(run, tmp_path):
    new = write(tmp_path / "city", seed=1, city=("Lima", "Oslo"))
    assert "of the values are unseen or unreadable, 0% in the fit" in differences(run, *new)
    new = write(tmp_path / "size", seed=1, size=2.0)
    found = differences(run, *new)
    assert "size: differs by 2." in found or "size: differs by 1.9" in found
    assert "features of neighbors: differ" in found
    assert "representation: the embeddings of the network differ by" in found
    wide = tmp_path / "size" / "wide.csv"
    lines = (tmp_path / "size" / "nodes.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    scaled = [f"{n},{c},{100 * float(v) if v else v},{label}" for n, c, v, label in cells[1:]]
    wide.write_text("\n".join([lines[0], *scaled]))
    assert "times the spread of the fit" in differences(run, wide, new[1])
    new = write(tmp_path / "missing", seed=1, missing=0.5)
    assert "of the values are missing, 0% in the fit" in differences(run, *new)
    new = write(tmp_path / "edges", seed=1, degree=1)
    assert "edges: 1.0 neighbors on average, 4.0 in the fit" in differences(run, *new)


def test_the_command_warns_or_fails(run, tmp_path):
    nodes, edges = write(tmp_path / "size", seed=1, size=2.0)
    command = ("predict", run.folder, nodes, edges, "-o", tmp_path / "out.csv")
    failed = dcgst(*command, "--fail-on-drift")
    assert failed.code == 3
    assert "Warning: drift in size: differs by" in failed.err
    assert not (tmp_path / "out.csv").exists()
    done = dcgst(*command, "--json")
    assert done.code == 0
    assert (tmp_path / "out.csv").exists()
    assert json.loads(done.out)["drift"][0].startswith("size: differs by")


def test_means_are_compared_in_standard_deviations():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(1000, 3)), rng.normal(size=(1000, 3))
    assert mean_difference(a, b) == 0
    # One of three columns is moved by 2; the standard deviation of all is the root of 3.
    b[:, 0] += 2
    assert mean_difference(a, b) == pytest.approx(2 / 3**0.5, rel=0.1)
    assert mean_difference(sp.csr_array(a), sp.csr_array(b)) == pytest.approx(
        mean_difference(a, b), rel=1e-6
    )
    assert mean_difference(np.ones((5, 1)), np.full((5, 1), 3.0)) == 2
    assert mean_difference(a, b[:1]) == 0, "one row says nothing"


def test_numbers_far_from_zero_are_no_drift():
    rng = np.random.default_rng(0)
    one, two = (rng.normal(1e4, 1, (500, 2)).astype(np.float32) for _ in range(2))
    for kind in (np.asarray, sp.csr_array):
        assert mean_difference(kind(one), kind(two)) == 0
    assert mean_difference(one, two + 2) == pytest.approx(2, abs=0.2)


def test_codes_that_occur_once_are_expected_to_be_new(tmp_path):
    """Many codes of any new rows are unseen; that is no drift."""
    rng = np.random.default_rng(0)

    def tables(name, start, count):
        rows = [f"n{i},K-{rng.integers(10**4):05d},{'ab'[i % 2] if i < 30 else ''}"
                for i in range(start, start + count)]  # fmt: skip
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,sku,label", *rows]))
        edges = [f"n{i},n{rng.integers(start, start + count)}" for i in range(start, start + count)]
        (tmp_path / f"{name}_e.csv").write_text("\n".join(["source,target", *edges]))
        return tmp_path / f"{name}.csv", tmp_path / f"{name}_e.csv"

    run = fit(read(*tables("fit", 0, 400)), tmp_path / "run", GCN(epochs=2, hidden=4))
    found = run.predict_other(*tables("new", 1000, 100)).drift
    assert not [drift for drift in found if "unseen" in drift.text]


@pytest.mark.parametrize("rows", [2, 3, 5, 10, 30])
def test_small_batches_are_rarely_drift(rows):
    """Of batches of the same distribution, about one in a hundred may be an alarm."""
    rng = np.random.default_rng(0)
    fitted = rng.normal(size=(1000, 1))
    batches = [rng.normal(size=(rows, 1)) for _ in range(400)]
    assert sum(mean_difference(fitted, batch) > 0 for batch in batches) <= 8
    flags = (rng.random((1000, 1)) < 0.05).astype(float)
    batches = [(rng.random((rows, 1)) < 0.05).astype(float) for _ in range(400)]
    assert sum(spread_ratio(flags, batch) is not None for batch in batches) <= 16


def test_spread_of_dense_and_sparse_features():
    rng = np.random.default_rng(0)
    fitted, wider = rng.normal(size=(500, 2)), 3 * rng.normal(size=(200, 2))
    assert spread_ratio(fitted, wider) == pytest.approx(3, rel=0.1)
    assert spread_ratio(sp.csr_array(fitted), sp.csr_array(wider)) == pytest.approx(
        spread_ratio(fitted, wider)
    )
    assert spread_ratio(fitted, np.full((200, 2), 0.3)) == 0, "a column that became constant"
    assert spread_ratio(fitted, rng.normal(size=(200, 2))) is None
