"""Stores: the same graph as from tables in memory, errors that name the row, interruptions."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import parquet

from dcgst.errors import InputError
from dcgst.tables import Columns, read
from dcgst.tables import importing as module
from dcgst.tables.importing import import_tables
from dcgst.tables.store import _digest, digests_of, open_store


def write(folder, nodes: str, edges: str):
    paths = folder / "nodes.csv", folder / "edges.csv"
    for path, text in zip(paths, (nodes, edges), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


NODES = """id,label,size,color,on,note,weight of it
n10,a,1.5,red,1,the cat sat on the mat,7
n2, b ,NA,blue,0,"a dog, and a cat",8
n1,,2.5,red,1,birds sing on the roof,9
ü3,a,-4,green,0,the dog sleeps on the mat,7
n7,,inf,,1,none,1
"""
EDGES = """source,target,w
n10,n2,1
n2,n10,3
n1,ü3,0.5
n1,n1,2
n7,n1,1
n7,n1,4
n2,ü3,0
"""


@pytest.fixture
def tables(tmp_path):
    return write(tmp_path, NODES.replace("inf", "3"), EDGES)


def same(store, tables, **options) -> None:
    """The graph of a store is that of the tables in memory, sorted by id."""
    found = open_store(store).graph
    expected = read(*tables, **options).graph
    expected = expected.reorder(expected.id_order)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.class_names == expected.class_names
    assert found.labels.tolist() == expected.labels.tolist()
    assert abs(found.adjacency - expected.adjacency).nnz == 0
    dense = [f.toarray() if sp.issparse(f) else f for f in (found.features, expected.features)]
    np.testing.assert_allclose(*dense, atol=1e-6)
    assert found.weighted == expected.weighted
    assert found.id_order.tolist() == list(range(found.num_nodes))


def test_skewed_numbers_rare_values_and_huge_numbers_as_in_memory(tmp_path):
    """Missing values are not zeros, values in one row are no categories, 1e300 is missing."""
    rng = np.random.default_rng(0)
    rows = ["id,amount,color,label"]
    for i in range(80):
        amount = "" if i % 5 == 0 else "1e300" if i == 7 else f"{rng.lognormal(2, 2):.3f}"
        color = "" if i % 6 == 0 else "once" if i == 8 else ["red", "blue"][i % 2]
        rows.append(f"n{i:02d},{amount},{color},{'ab'[i % 2] if i < 10 else ''}")
    (tmp_path / "nodes.csv").write_text("\n".join(rows))
    edges = [f"n{i:02d},n{(i + 1) % 80:02d},k{i % 2}" for i in range(80)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target,type", *edges]))
    notes = import_tables(tmp_path / "nodes.csv", tmp_path / "edges.csv", tmp_path / "g.store")
    assert "columns of edges.csv not used: type" in notes
    stored = read(tmp_path / "g.store")
    expected = read(tmp_path / "nodes.csv", tmp_path / "edges.csv", Columns(edge_type="none"))
    for own, other in zip(stored.encoder.columns, expected.encoder.columns, strict=True):
        assert own.size == other.size
        assert own.missing == other.missing
    found, wanted = (sp.csr_array(data.graph.features).toarray() for data in (stored, expected))
    np.testing.assert_allclose(found, wanted, atol=2e-3)


def test_the_same_graph_as_in_memory(tables, tmp_path):
    out = tmp_path / "g.store"
    notes = import_tables(*tables, out, Columns(label="label", kinds={"note": "text"}))
    same(out, tables, columns=Columns(label="label", kinds={"note": "text"}))
    assert "1 self-loops dropped" in notes
    assert open_store(out).notes == notes
    assert not (out / "import").exists()


def test_one_thousand_nodes_in_small_batches(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 64)
    ids = [f"{number:04x}" for number in rng.permutation(1000)]
    labels = [str(rng.integers(3)) if rng.random() < 0.2 else "" for _ in ids]
    rows = [
        f"{own},{label},{rng.normal():.4f},{rng.integers(2)}"
        for own, label in zip(ids, labels, strict=True)
    ]
    ends = [f"{ids[a]},{ids[b]}" for a, b in rng.integers(0, 1000, (3000, 2))]
    paths = write(tmp_path, "\n".join(["id,class,x,flag", *rows]), "\n".join(["a,b", *ends]))
    import_tables(*paths, tmp_path / "g.store", memory=1 << 28)
    same(tmp_path / "g.store", paths)


def sparse_tables(folder, rng):
    words = [f"word{number}" for number in range(200)]
    rows = [f"v{i},{i % 2},{' '.join(rng.choice(words, 5))}" for i in range(150)]
    ends = [f"v{a},v{b}" for a, b in rng.integers(0, 150, (400, 2))]
    return write(folder, "\n".join(["id,label,text", *rows]), "\n".join(["source,target", *ends]))


def test_sparse_features(tmp_path, rng):
    paths = sparse_tables(tmp_path, rng)
    import_tables(*paths, tmp_path / "g.store")
    assert sp.issparse(open_store(tmp_path / "g.store").graph.features)
    same(tmp_path / "g.store", paths)


def test_parquet(tmp_path, rng):
    nodes = pa.table({"id": [3, 1, 2], "label": ["x", None, "y"], "size": [1.0, None, 5.0]})
    edges = pa.table({"source": [1, 2], "target": [2, 3]})
    paths = tmp_path / "n.parquet", tmp_path / "e.parquet"
    for table, path in zip((nodes, edges), paths, strict=True):
        parquet.write_table(table, path)
    import_tables(*paths, tmp_path / "g.store")
    same(tmp_path / "g.store", paths)


def test_an_edge_table_without_header_and_another_delimiter(tmp_path):
    paths = write(tmp_path, "id;label;x\na;1;2\nb;2;3\nc;;5\n", "a;b\nb;c\n")
    import_tables(*paths, tmp_path / "g.store")
    same(tmp_path / "g.store", paths)


def test_names_with_quotes(tmp_path):
    nodes = 'id,label,"it\'s ""x"""\na\'b,l\'1,2\n"c""d",l2,5\n'
    paths = write(tmp_path, nodes, 'source,target\na\'b,"c""d"\n')
    import_tables(*paths, tmp_path / "g.store")
    same(tmp_path / "g.store", paths)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n2, b", "n10, b", "nodes.csv, row 2: the id 'n10' is repeated, it is also in row 1"),
        ("n1,,2.5", ",,2.5", "nodes.csv, row 3: the id in column 'id' is missing"),
        ("n1,ü3,0.5", "n1,u3,0.5", "edges.csv, row 3: no node has the id 'u3'; fix it, or drop"),
        ("n1,ü3,0.5", ",ü3,0.5", r"edges.csv, row 3: no node has the id '' \(the cell is empty\)"),
        ("n1,ü3,0.5", "n1,ü3,-1", "edges.csv, row 3: the edge weight in column 'w' must be a numb"),
        ("n1,ü3,0.5", "n1,ü3,much", "row 3: .* and at most 3e.38, got 'much'; fix"),
        ("n1,ü3,0.5", "n1,ü3,1e39", "row 3: .* and at most 3e.38, got '1e39'; fix"),
    ],
)
def test_errors_name_file_row_and_remedy(tables, tmp_path, old, new, message):
    for path in tables:
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        import_tables(*tables, tmp_path / "g.store")
    with pytest.raises(InputError, match="is not complete; run the same `dcgst import` again"):
        read(tmp_path / "g.store")


def test_after_an_error_the_corrected_tables_can_be_imported(tables, tmp_path):
    good = tables[1].read_text()
    tables[1].write_text(good.replace("n1,ü3", "n1,u3"))
    with pytest.raises(InputError, match="u3"):
        import_tables(*tables, tmp_path / "g.store")
    tables[1].write_text(good)
    import_tables(*tables, tmp_path / "g.store")
    same(tmp_path / "g.store", tables)


def test_edges_with_unknown_ids_are_dropped_on_request(tables, tmp_path):
    tables[1].write_text(tables[1].read_text() + "n1,nobody,1\n")
    notes = import_tables(*tables, tmp_path / "g.store", drop_unknown=True)
    assert "edges with unknown node ids dropped: 1" in notes
    same(tmp_path / "g.store", tables, drop_unknown=True)


def test_values_that_are_no_numbers_count_as_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 20)  # the sample does not contain the wrong value
    rows = ["id,label,x", *(f"v{i},{i % 2},{i}" for i in range(5000)), "last,0,much"]
    paths = write(tmp_path, "\n".join(rows), "source,target\nv1,v2\n")
    notes = import_tables(*paths, tmp_path / "g.store")
    assert "feature x: 1 values are not numbers, like 'much'; they count as missing" in notes
    graph = open_store(tmp_path / "g.store").graph
    assert graph.features[graph.ids.tolist().index("last"), 0] == 0


def test_an_interrupted_import_continues(tables, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    out, steps = tmp_path / "g.store", []
    with monkeypatch.context() as patch:
        patch.setattr("dcgst.tables.importing.import_edges", stop)
        with pytest.raises(KeyboardInterrupt):
            import_tables(*tables, out)
    import_tables(*tables, out, progress=lambda step, _: steps.append(step))
    assert set(steps) == {"edges", "digest"}
    same(out, tables)


def test_after_an_unknown_id_only_the_edges_are_read_again(tables, tmp_path):
    nodes, edges = tables
    edges.write_text(edges.read_text() + "n1,nobody,1\n")
    out, steps = tmp_path / "g.store", []
    with pytest.raises(InputError, match="no node has the id 'nobody'"):
        import_tables(nodes, edges, out)
    notes = import_tables(
        nodes, edges, out, drop_unknown=True, progress=lambda step, _: steps.append(step)
    )
    assert set(steps) == {"edges", "digest"}
    assert any("unknown node ids dropped: 1" in note for note in notes)
    same(out, tables, drop_unknown=True)


def test_another_node_table_needs_overwrite(tables, tmp_path, monkeypatch):
    nodes, edges = tables
    monkeypatch.setattr("dcgst.tables.importing.import_edges", interrupt)
    with pytest.raises(KeyboardInterrupt):
        import_tables(nodes, edges, tmp_path / "g.store")
    nodes.write_text(nodes.read_text() + "\n")
    with pytest.raises(InputError, match="of another node table, or with other options"):
        import_tables(nodes, edges, tmp_path / "g.store")


def interrupt(*_):
    raise KeyboardInterrupt


def test_nothing_else_is_overwritten(tables, tmp_path):
    out = tmp_path / "g.store"
    import_tables(*tables, out)
    with pytest.raises(InputError, match="exists already; use overwrite=True"):
        import_tables(*tables, out)
    import_tables(*tables, out, overwrite=True)
    (out / "diary.txt").write_text("mine")
    with pytest.raises(InputError, match=r"contains other files \(diary.txt\)"):
        import_tables(*tables, out, overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        import_tables(*tables, tmp_path / "file")


def test_a_damaged_store_is_refused(tables, tmp_path):
    out = tmp_path / "g.store"
    import_tables(*tables, out)
    (out / "indices.bin").write_bytes(b"123")
    with pytest.raises(InputError, match=r"indices\.bin is damaged"):
        open_store(out)
    import_tables(*tables, out, overwrite=True)
    (out / "labels.npy").unlink()
    with pytest.raises(InputError, match=r"labels\.npy is missing"):
        open_store(out)
    content = json.loads((out / "store.json").read_text())
    (out / "store.json").write_text(json.dumps({**content, "version": 99}))
    with pytest.raises(InputError, match="another version"):
        open_store(out)


def test_a_store_has_its_columns_already(tables, tmp_path):
    import_tables(*tables, tmp_path / "g.store")
    with pytest.raises(InputError, match="is a store: its edges and the roles"):
        read(tmp_path / "g.store", tables[1])
    with pytest.raises(InputError, match="is a store"):
        read(tmp_path / "g.store", columns=Columns(label="color"))


def test_tables_without_usable_features(tmp_path):
    paths = write(tmp_path, "id,label\na,1\nb,2\n", "source,target\na,b\n")
    with pytest.raises(InputError, match="no usable feature columns"):
        import_tables(*paths, tmp_path / "g.store")


class TestDamage:
    """Files of a store are verified when it is opened for the first time, and after changes."""

    @pytest.fixture
    def store(self, tmp_path):
        """Its features are dense."""
        nodes = "id,label,size,weight\na,x,1.5,2\nb,y,2,0\nc,,1,7\nd,x,0.5,3\n"
        tables = write(tmp_path, nodes, "source,target,w\na,b,1\nb,c,0.5\nd,a,2\n")
        import_tables(*tables, tmp_path / "s.store")
        return tmp_path / "s.store"

    @pytest.mark.parametrize("which", ["dense", "sparse"])
    def test_a_flipped_bit_of_any_file_is_an_error_that_names_it(self, store, which, rng):
        if which == "sparse":
            tables = sparse_tables(store.parent, rng)
            store = store.parent / "sparse.store"
            import_tables(*tables, store)
        names = sorted(path.name for path in store.iterdir() if path.name != "verified.json")
        assert len(names) == (9 if which == "sparse" else 7), names
        for name in names:
            path = store / name
            content = path.read_bytes()
            for position in (0, len(content) // 2, len(content) - 1):
                damaged = bytearray(content)
                damaged[position] ^= 0x40
                path.write_bytes(bytes(damaged))
                with pytest.raises(InputError, match=name):
                    open_store(store)
            path.write_bytes(content)
        assert open_store(store).graph.num_nodes

    def test_every_entry_of_the_description_is_needed_and_sealed(self, store):
        path = store / "store.json"
        text = path.read_text()
        content = json.loads(text)
        for key in content:
            path.write_text(json.dumps({k: v for k, v in content.items() if k != key}))
            with pytest.raises(InputError, match=r"s\.store"):
                open_store(store)
        path.write_text(json.dumps({**content, "name": "other"}))
        with pytest.raises(InputError, match="it was changed"):
            open_store(store)

    @pytest.mark.parametrize(
        ("name", "kind", "value"),
        [
            ("indices.bin", np.int32, 5),
            ("indices.bin", np.int32, -1),
            ("indptr.bin", np.int32, 99),
            ("weights.bin", np.float32, np.nan),
            ("features.bin", np.float32, np.inf),
        ],
    )
    def test_invalid_values_are_errors_even_if_the_digests_fit(self, store, name, kind, value):
        array = np.fromfile(store / name, kind)
        array[1] = value
        array.tofile(store / name)
        path = store / "store.json"
        content = json.loads(path.read_text())
        del content["seal"]
        content["files"][name] = digests_of(store)[name]
        content["seal"] = _digest(content)
        path.write_text(json.dumps(content))
        with pytest.raises(InputError, match=name):
            open_store(store)

    def test_only_regular_files_are_read(self, store):
        for name in ("ids.npy", "indptr.bin", "store.json"):
            (store / name).rename(store / "kept")
            os.mkfifo(store / name)
            with pytest.raises(InputError, match=f"{name} is not a regular file"):
                open_store(store)
            (store / name).unlink()
            (store / "kept").rename(store / name)
        assert open_store(store)

    def test_files_are_verified_again_only_if_they_changed(self, store, monkeypatch):
        read = []
        monkeypatch.setattr("dcgst.tables.store._digest_of_file", lambda path: read.append(path))
        open_store(store)
        assert not read, "the import has computed the digests"
        os.utime(store / "ids.npy", (1, 1))
        with pytest.raises(InputError, match="it was changed"):
            open_store(store)
        assert read


def test_a_header_that_hides_all_rows_is_an_error(tmp_path):
    """DuckDB reads no row after a header cell with text around a quoted word."""
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text('id, "size" cm,label\na,1,x\nb,2,y\nc,3,x\n')
    edges.write_text("source,target\na,b\nb,c\n")
    with pytest.raises(InputError, match=r"nodes.csv: no row can be read after the header"):
        import_tables(nodes, edges, tmp_path / "g.store")


def test_a_long_id_is_named(tmp_path):
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text(f"id,size,label\na,1,x\n{'b' * 2000},2,y\nc,3,x\n")
    edges.write_text("source,target\na,c\n")
    with pytest.raises(InputError, match=r"nodes.csv, row 2: the id 'b+'… has 2,000 characters"):
        import_tables(nodes, edges, tmp_path / "g.store")
