"""Graph files read back as the graph that was written, or give a clear error; never anything else."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from lograb.errors import LograbError
from lograb.graphs.files import read_graph
from lograb.types import Graph

NAMES = {
    "plain": [str(i) for i in range(12)],
    "gaps": [str(7 * i - 20) for i in range(12)],
    "huge": [str(10**18 * 9 + i) for i in range(12)],
    "words": ["ann", "bob", "007", "7a", "ünï", "o'hara", "x-1", "3.5", "nan", "+4", "e", "日本"],
    "blanks": ["ann lee", "bob", "c d e", "f", "g", "h i", "j", "k", "l", "m n", "o", "p"],
}
QUOTED_NAMES = ['say "hi"', "a,b", "c;d", "e\tf", "g", "h"]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def named_edges(graph: Graph) -> set[frozenset[str]]:
    names = graph.node_names or tuple(map(str, range(graph.n_nodes)))
    return {frozenset((names[u], names[w])) for u, w in graph.edges}


def named_nodes(graph: Graph) -> set[str]:
    return set(graph.node_names or map(str, range(graph.n_nodes)))


def simple(pairs: list[tuple[str, str]]) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in pairs if pair[0] != pair[1]}


def check_notices(graph: Graph, pairs: list[tuple[str, str]], directed: bool | None) -> None:
    """The counts in the notices are those of the pairs that were written."""
    text = " | ".join(graph.notices)
    proper = [pair for pair in pairs if pair[0] != pair[1]]
    loops, both = len(pairs) - len(proper), len(set(proper)) - len(simple(pairs))
    repeats = len(proper) - (len(simple(pairs)) if directed is False else len(set(proper)))
    assert (f"self-loops dropped: {loops} " in text) == (loops > 0)
    assert (f"merged: {repeats} extra" in text) == (repeats > 0)
    if directed is None:
        assert (f"{both} pair" in text) == (both > 0)
    if directed:
        assert (f"{len(set(proper))} directed edge" in text) == (len(proper) > 0)


@st.composite
def listed(draw, kinds=tuple(NAMES)) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs of names (loops, repetitions and both directions included) and extra nodes without edges."""
    names = NAMES[draw(st.sampled_from(kinds))]
    name = st.sampled_from(names[: draw(st.integers(2, 12))])
    return draw(st.lists(st.tuples(name, name), min_size=1, max_size=25)), draw(st.lists(name, max_size=4))


@given(listed(("plain", "gaps", "huge", "words")), st.sampled_from([",", "\t", ";", " ", "  ", ", ", " \t"]),
       st.sampled_from(["", "source target", "FromNodeId ToNodeId", "Node_1 Node_2"]),
       st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.integers(0, 2), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_edge_lists_read_back(content, delimiter, header, newline, bom, extra, random_) -> None:
    pairs, alone = content
    tail = [f"{i}.5" for i in range(extra)]
    lines = [delimiter.join([*pair, *tail]) for pair in pairs] + alone
    # A node alone may stand anywhere, comments and empty lines too.
    for comment in ("# a comment", "% another, with 3 words", ""):
        lines.insert(random_.randint(0, len(lines)), comment)
    if header:
        lines.insert(0, delimiter.join([*header.split(), *(f"w{i}" for i in range(extra))]))
    text = newline.join(lines)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "g.txt", text.encode("utf-8-sig" if bom else "utf-8"))
        graph = read_graph(path)
    assert named_edges(graph) == simple(pairs)
    assert named_nodes(graph) == {name for pair in pairs for name in pair} | set(alone)
    check_notices(graph, pairs, None)
    assert any("read as a header" in notice for notice in graph.notices) == bool(header)
    assert any("columns" in notice for notice in graph.notices) == bool(extra)


@given(st.lists(st.tuples(*[st.sampled_from(QUOTED_NAMES)] * 2), min_size=1, max_size=12),
       st.sampled_from([",", "\t", ";", " "]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_quoted_names_may_hold_anything(pairs, delimiter, header) -> None:
    def quote(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    lines = [delimiter.join(map(quote, pair)) for pair in pairs]
    text = "\n".join([delimiter.join(['"source"', '"target"'])] * header + lines)
    with tempfile.TemporaryDirectory() as folder:
        graph = read_graph(write(Path(folder), "g.edges", text))
    assert named_edges(graph) == simple(pairs)


@given(listed())
@settings(max_examples=60, deadline=None)
def test_names_with_blanks_read_back_from_csv(content) -> None:
    pairs, alone = content
    with tempfile.TemporaryDirectory() as folder:
        # A name with a blank alone on its line looks like an edge with another separator, unless quoted.
        text = "\n".join([*(f'"{name}"' for name in alone), *(f"{u},{w}" for u, w in pairs)])
        graph = read_graph(write(Path(folder), "g.csv", text), header=False)
    assert named_edges(graph) == simple(pairs)
    assert named_nodes(graph) == {name for pair in pairs for name in pair} | set(alone)


@given(listed(), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_graphml_reads_back(content, directed, namespace, weighted) -> None:
    pairs, alone = content
    nodes = list(dict.fromkeys([*alone, *(name for pair in pairs for name in pair)]))
    space = ' xmlns="http://graphml.graphdrawing.org/xmlns"' if namespace else ""
    key = '<key id="d0" for="edge" attr.name="weight" attr.type="double"/>' if weighted else ""
    data = '<data key="d0">0.0</data>' if weighted else ""
    text = f'<?xml version="1.0" encoding="utf-8"?><graphml{space}>{key}<!-- c -->'
    text += f'<graph edgedefault="{"directed" if directed else "undirected"}">\n'
    text += "\n".join(f"<node id={quoteattr(name)}/>" for name in nodes)
    text += "\n".join(f"<edge source={quoteattr(u)} target={quoteattr(w)}>{data}</edge>" for u, w in pairs)
    with tempfile.TemporaryDirectory() as folder:
        graph = read_graph(write(Path(folder), "g.graphml", text + "</graph></graphml>"))
    assert named_edges(graph) == simple(pairs)
    assert named_nodes(graph) == set(nodes)
    check_notices(graph, pairs, directed)
    assert any("weight" in notice for notice in graph.notices) == weighted


@st.composite
def matrices(draw) -> sp.coo_array:
    """Square integer matrices with loops, stored zeros and entries on one or both sides."""
    n = draw(st.integers(1, 9))
    place = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    values = draw(st.dictionaries(place, st.integers(-2, 3), max_size=20))
    ends = np.array(list(values), dtype=np.int32).reshape(-1, 2).T
    return sp.coo_array((np.array(list(values.values()), dtype=np.int64), tuple(ends)), shape=(n, n))


def matrix_edges(matrix: sp.coo_array) -> set[frozenset[str]]:
    return simple([(str(u), str(w)) for u, w in zip(*np.nonzero(matrix.toarray()), strict=True)])


@given(matrices(), st.sampled_from(["pattern", "real", "integer"]), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_matrix_market_reads_back(matrix, field, symmetric, packed) -> None:
    if field == "pattern":
        matrix.eliminate_zeros()
    if symmetric:
        matrix = sp.coo_array(matrix + matrix.T)
    stream = io.BytesIO()
    symmetry = "symmetric" if symmetric else "general"
    scipy.io.mmwrite(stream, matrix, comment="a comment", field=field, symmetry=symmetry)
    with tempfile.TemporaryDirectory() as folder:
        name, pack = ("g.mtx.gz", gzip.compress) if packed else ("g.mtx", bytes)
        graph = read_graph(write(Path(folder), name, pack(stream.getvalue())))
    expected = sp.coo_array(matrix)
    assert named_edges(graph) == matrix_edges(expected)
    assert graph.n_nodes == matrix.shape[0]
    one_way = any("one direction only" in notice for notice in graph.notices)
    filled = expected.toarray() != 0
    assert one_way == bool((filled != filled.T).any())


@given(matrices(), st.sampled_from(["general", "symmetric", "skew-symmetric"]),
       st.sampled_from(["real", "complex"]))
@settings(max_examples=60, deadline=None)
def test_dense_matrix_market_reads_back(matrix, symmetry, field) -> None:
    dense = matrix.toarray().astype(np.complex128 if field == "complex" else np.float64)
    if symmetry != "general":
        dense = dense + dense.T if symmetry == "symmetric" else dense - dense.T
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, dense, field=field, symmetry=symmetry)
    with tempfile.TemporaryDirectory() as folder:
        graph = read_graph(write(Path(folder), "g.mtx", stream.getvalue()))
    assert named_edges(graph) == matrix_edges(sp.coo_array(dense))
    assert graph.n_nodes == len(dense)


@given(matrices(), st.sampled_from(["csr", "csc", "coo", "bsr", "dia"]))
@settings(max_examples=60, deadline=None)
def test_scipy_npz_reads_back(matrix, kind) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sp.save_npz(Path(folder) / "g.npz", matrix.asformat(kind))
        graph = read_graph(Path(folder) / "g.npz")
    assert named_edges(graph) == matrix_edges(matrix)
    assert graph.n_nodes == matrix.shape[0]


@given(listed(("plain", "gaps")), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_array_npz_reads_back(content, as_index, with_rows) -> None:
    pairs, _ = content
    edges = np.array(pairs).astype(np.int64)
    arrays = {"edge_index": edges.T} if as_index else {"edges": edges}
    if with_rows:
        arrays["edges" if not as_index else "edge_index"] = abs(arrays.popitem()[1])
        pairs = [(str(abs(int(u))), str(abs(int(w)))) for u, w in pairs]
        arrays |= {"x": np.ones((80, 2), np.float32), "labels": np.arange(80) % 3}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "g.npz", **arrays)
        graph = read_graph(Path(folder) / "g.npz")
    assert named_edges(graph) == simple(pairs)
    if with_rows:
        assert graph.n_nodes == 80
        assert np.array_equal(graph.features, arrays["x"])
        assert np.array_equal(graph.labels, arrays["labels"])
    else:
        assert named_nodes(graph) == {name for pair in pairs for name in pair}
        check_notices(graph, pairs, None) if not as_index else None


def test_whole_numbers_are_ordered_numerically_other_names_alphabetically(tmp_path: Path) -> None:
    assert read_graph(write(tmp_path, "a.txt", "10 9\n9 2\n")).node_names == ("2", "9", "10")
    assert read_graph(write(tmp_path, "b.txt", "10 09\n09 2\n")).node_names == ("09", "10", "2")
    assert read_graph(write(tmp_path, "c.txt", "2 1\n1 0\n")).node_names is None
    assert read_graph(write(tmp_path, "d.txt", "z a\na m\n")).node_names == ("a", "m", "z")


def test_origin_and_name(tmp_path: Path) -> None:
    path = write(tmp_path, "friends.csv.gz", gzip.compress(b"a,b\n", mtime=0))
    graph = read_graph(path)
    assert graph.name == "friends"
    assert graph.origin.source == "friends.csv.gz"
    assert graph.origin.kind == "file"
    assert graph.origin.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_headers(tmp_path: Path) -> None:
    def edges(text: str, header: bool | None = None) -> set[frozenset[str]]:
        return named_edges(read_graph(write(tmp_path, "g.csv", text), header=header))

    assert edges("source,target\na,b\n") == simple([("a", "b")])
    assert edges("who,whom\n1,2\n3,4\n") == simple([("1", "2"), ("3", "4")])
    assert edges("ann,bob\n7\n") == simple([("ann", "bob")])
    assert edges("ann,bob\n7,eve\n") == simple([("ann", "bob"), ("7", "eve")])
    assert edges("ann,bob\nbob,eve\n") == simple([("ann", "bob"), ("bob", "eve")])
    # Known words that occur again are names.
    assert edges("u,v\nv,w\n") == simple([("u", "v"), ("v", "w")])
    assert edges("who,whom\nann,bob\n", header=True) == simple([("ann", "bob")])
    assert edges("source,target\n1,2\n", header=False) == simple([("source", "target"), ("1", "2")])


def test_networkx_edge_list_with_dictionaries(tmp_path: Path) -> None:
    graph = nx.path_graph(5)
    graph.add_edge(0, 4, weight=1.5, colour="light blue")
    nx.write_edgelist(graph, tmp_path / "g.edgelist")
    read = read_graph(tmp_path / "g.edgelist")
    assert {tuple(edge) for edge in read.edges.tolist()} == {tuple(sorted(edge)) for edge in graph.edges}


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])])
def test_networkx_graphml(tmp_path: Path, graph: nx.Graph) -> None:
    nx.write_graphml(graph, tmp_path / "g.graphml")
    read = read_graph(tmp_path / "g.graphml")
    assert named_edges(read) == simple([(str(u), str(w)) for u, w in graph.edges])


def test_sparse_features(tmp_path: Path) -> None:
    x = sp.csr_array(np.array([[0, 1.5], [2, 0], [0, 0]]))
    np.savez(tmp_path / "g.npz", edges=[[0, 2]], x_indptr=x.indptr, x_indices=x.indices, x_data=x.data,
             x_shape=x.shape)
    graph = read_graph(tmp_path / "g.npz")
    assert graph.n_nodes == 3
    assert (graph.features != x).nnz == 0


@pytest.mark.parametrize(("name", "content", "message"), [
    ("g.csv", "", "empty"),
    ("g.csv", "# only\n\n", "no line with content"),
    ("g.csv", "source,target\n", "only the header"),
    ("g.csv", "a|b\nc|d\n", "one separator.*the bar would split"),
    ("g.csv", "ab\ncd\n", "line 1: .*no second column"),
    ("g.csv", "a b\nc d\ne,f\n", "split at the comma, 2 of 3 lines.*'a b', which the blank"),
    ("g.csv", "a,b\nc;d\ne f\ng|h\n", "split at the comma, 3 of 4 lines.*the semicolon or another mark would"),
    ("g.csv", "a,b\n\nc,\n", "line 3: .*empty"),
    ("g.csv", "a,b\n#\nc,d,e\n", "line 3: .*2 fields.*got 3"),
    ("g.csv", 'a,b\n"c,d\n', "line 2: quotes"),
    ("g.txt", 'a b\n"c d\n', "line 2: quotes"),
    ("g.csv", b"a,b\n\xff,c\n", "0xff on line 2"),
    ("g.csv", "a,b\n".encode("utf-16"), "UTF-16"),
    ("g.csv", b"a,\0b\n", "binary"),
    ("g.jpg", "a,b", "suffix '.jpg'"),
    ("g.npy", "", "put it into a folder.*lograb pack"),
    ("g.npz.gz", "", "packed already"),
    ("g.csv.gz", b"a,b\n", "not a readable .gz"),
    ("g.csv.gz", gzip.compress(b"a,b\n" * 100, mtime=0)[:-9], "cut off"),
    ("g.mtx", "1 2\n", "must start with"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 1\n", "square"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n9 9 99999\n1 1\n", "announced"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n99999999999 99999999999 1\n1 2\n", "at most"),
    ("g.mtx", "%%MatrixMarket matrix array real general\n900000 900000\n1\n", "announced"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 7\n", "1 .. 2, got 7 .. 7"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 b\n", "whole numbers"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n2 1\n", "line 4: .*announces 1"),
    ("g.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n\n", "incomplete"),
    ("g.mtx", "%%MatrixMarket matrix coordinate text general\n2 2 1\n1 2 3\n", "the field must be"),
    # This one takes scipy's reader down.
    ("g.mtx", "%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 1\n3 2 2,", "must be numbers"),
    ("g.graphml", '<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', "DOCTYPE"),
    ("g.graphml", '<!DOCTYPE graphml SYSTEM "g.dtd"><graphml/>', "DOCTYPE"),
    ("g.graphml", "<graphml><graph/><graph/></graphml>", "one graph, got 2"),
    ("g.graphml", "<graphml><graph><node id='a'/>\n<edge source='a' target='b'/></graph></graphml>",
     "line 2.*'b'"),
    ("g.graphml", "<graphml><graph></graph></graphml>", "no nodes"),
    ("g.graphml", "<svg/>", "<graphml>"),
    ("g.graphml", "<graphml>", "well-formed"),
    ("g.npz", "PK no", "not a readable .npz"),
])
def test_errors_name_the_file_and_the_problem(tmp_path: Path, name: str, content, message: str) -> None:
    with pytest.raises(LograbError, match=message) as error:
        read_graph(write(tmp_path, name, content))
    assert "g" in str(error.value)


@pytest.mark.parametrize(("arrays", "message"), [
    ({"edges": np.array([["a", "b"]])}, "whole numbers"),
    ({"edges": np.array([[0, object()]], dtype=object)}, "Python objects"),
    ({"edges": np.array([[0, 1, 2]])}, "two node ids"),
    ({"edges": np.array([[0, 5]]), "num_nodes": 3}, "0 .. 2"),
    ({"edges": np.array([[0, -1]]), "num_nodes": 3}, "0 .. 2"),
    ({"edges": np.array([[0, 1]]), "num_nodes": 10**12}, "at most"),
    ({"edges": np.array([[0, 1]]), "edge_index": np.array([[0], [1]])}, "either"),
    ({"edges": np.array([[0, 1]]), "x": np.ones(2)}, "features"),
    ({"edges": np.array([[0, 1]]), "x": np.array([[1.0], [np.nan]])}, "finite"),
    ({"edges": np.array([[0, 1]]), "y": np.array([0.5, 1])}, "whole numbers"),
    ({"edges": np.array([[0, 1]]), "y": np.array([0, 1]), "labels": np.array([0, 1])}, "both"),
    ({"edges": np.array([[2**64 - 1, 1]], dtype=np.uint64)}, r"2\*\*63"),
    ({"edges": np.empty((0, 2), dtype=np.int64)}, "no nodes"),
    ({"a": np.ones(3)}, "either"),
    ({"format": b"csr", "shape": [3, 3], "data": np.ones(1), "indices": [99], "indptr": [0, 1, 1, 1]}, "scipy"),
    ({"format": b"csr", "shape": [3, 3], "data": np.ones(1), "indices": [0], "indptr": [0, 9, 9, 1]}, "scipy"),
    ({"format": b"lil", "shape": [3, 3], "data": np.ones(1)}, "sparse format"),
    ({"format": b"coo", "shape": [3, 3], "data": np.ones(1), "row": [5], "col": [0]}, "scipy"),
])
def test_bad_arrays(tmp_path: Path, arrays, message: str) -> None:
    np.savez(tmp_path / "g.npz", **arrays)
    with pytest.raises(LograbError, match=message):
        read_graph(tmp_path / "g.npz")


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(LograbError, match="cannot read"):
        read_graph(tmp_path / "none.csv")
    with pytest.raises(LograbError, match="cannot read"):
        read_graph(tmp_path)


def samples() -> list[tuple[str, bytes]]:
    """One good file of every format, to be damaged."""
    matrix = sp.csr_array(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]))
    mtx, sparse, arrays = io.BytesIO(), io.BytesIO(), io.BytesIO()
    scipy.io.mmwrite(mtx, matrix)
    sp.save_npz(sparse, matrix, compressed=False)
    np.savez(arrays, edges=np.array([[0, 1], [1, 2]]), x=np.ones((3, 2)), y=np.arange(3), num_nodes=3)
    graphml = "\n".join(nx.generate_graphml(nx.path_graph(4))).encode()
    text = b'# c\nsource,target,w\n"ann b",bob,1\nbob,"c ""d""",2\n\neve\n'
    return [("g.csv", text), ("g.txt", b"1 2\n2 3\n% c\n7\n3 4 \n"), ("g.mtx", mtx.getvalue()),
            ("g.graphml", graphml), ("g.npz", sparse.getvalue()), ("g.npz", arrays.getvalue()),
            ("g.csv.gz", gzip.compress(text, mtime=0))]


def damage(content: bytes, rng: random.Random) -> bytes:
    """Overwrite, delete, repeat or insert a few stretches of bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8))
        noise = bytes(rng.randrange(256) for _ in range(length))
        again = bytes(data[at : at + length]) * 2
        piece = rng.choice((noise, again, b"9" * length, b'"', b",", b"<", b"-", b""))
        data[at : at + rng.choice((0, length))] = piece
    return bytes(data)


@pytest.mark.parametrize("which", range(7))
def test_damaged_files_give_a_graph_or_a_clean_error(tmp_path: Path, which: int) -> None:
    name, content = samples()[which]
    rng = random.Random(which)
    outcomes = set()
    for _ in range(300):
        try:
            outcomes.add(type(read_graph(write(tmp_path, name, damage(content, rng)))))
        except LograbError:
            outcomes.add(LograbError)
    assert outcomes <= {Graph, LograbError}
    assert LograbError in outcomes


@given(st.one_of(st.binary(max_size=200), st.text(alphabet='ab01,;\t "#%{}\n\r\\|é', max_size=80).map(str.encode)),
       st.sampled_from(["g.csv", "g", "g.tsv", "g.mtx", "g.graphml", "g.npz", "g.txt.gz"]),
       st.sampled_from([None, True, False]))
@settings(max_examples=400, deadline=None)
def test_any_bytes_give_a_graph_or_a_clean_error(content, name, header) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), name, content)
        try:
            graph = read_graph(path, header=header)
        except LograbError:
            return
    assert graph.n_nodes > 0


@pytest.mark.parametrize("text", ["id,source,target\n1,a,b\n", "weight,from,to\n1,a,b\n"])
def test_ends_that_do_not_come_first_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(LograbError, match="first two columns"):
        read_graph(write(tmp_path, "g.csv", text))


def test_a_first_line_whose_names_occur_nowhere_else_is_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "friends.csv"
    path.write_text("person,colleague\nann,bob\nbob,eve\n")
    found = read_graph(path)
    assert found.n_nodes == 5
    assert any("line 1 read as an edge" in notice for notice in found.notices)
    assert read_graph(path, header=True).n_nodes == 3
    path.write_text("ann,eve\nann,bob\nbob,eve\n")
    assert not read_graph(path).notices
    path.write_text("ann,ann\nbob,eve\neve,joe\n")  # a loop is no header
    assert not any("read as an edge" in notice for notice in read_graph(path).notices)


def test_an_edge_that_looks_like_a_header_is_kept(tmp_path: Path) -> None:
    assert read_graph(write(tmp_path, "a.csv", "n1,n2\nn3,n4\nn4,n5\n")).n_edges == 3
    assert read_graph(write(tmp_path, "b.csv", "u,v\nw,x\n")).n_edges == 2
    assert read_graph(write(tmp_path, "c.csv", "u,v\nann,bob\n")).n_edges == 1


def test_tabs_win_over_commas_inside_names(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path, "g.txt", "Smith, John\tDoe, Jane\nDoe, Jane\tRoe, Max\n"))
    assert graph.node_names == ("Doe, Jane", "Roe, Max", "Smith, John")


def test_skipped_comments_and_single_names_are_counted(tmp_path: Path) -> None:
    text = "# one\n% two\nann,bob\neve\nbob\n# three\nbob,joe\nzoe\n"
    notices = read_graph(write(tmp_path, "g.csv", text)).notices
    assert notices == ("3 comment lines skipped", "3 lines with a single name: 2 isolated nodes (eve, zoe)")
    notices = read_graph(write(tmp_path, "g.csv", "ann,bob\nbob\n")).notices
    assert notices == ("1 line with a single name: all of them have edges on other lines",)


def test_many_isolated_nodes_are_no_other_separator(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path, "g.csv", "ann,bob\n" + "".join(f"n{i}\n" for i in range(50))))
    assert graph.n_nodes == 52
    assert graph.notices[1:] == ("50 lines with a single name: 50 isolated nodes (n0, n1, n2, n3, n4 ...)",)


@pytest.mark.parametrize(("text", "notice"), [
    ("a,b\nb,c\nc,d\nd;e\n", "1 line has no comma, but the semicolon would split them, such as 'd;e'"),
    ("a\tb\nb\tc\nc\td\nd e\ne f\n", "2 lines have no tab, but the blank"),
    ("a b\nb c\nc e\nd,f\n", "1 line has no blank, but the comma"),
    ("a b\nb c\nc->d\n", "1 line has no blank, but the arrow"),
    ("a b\nb c\nc d\nc->d\ne,f\n", "2 lines have no blank, but the comma or another mark"),
])
def test_lines_with_another_separator_are_pointed_out(tmp_path: Path, text: str, notice: str) -> None:
    assert any(notice in told for told in read_graph(write(tmp_path, "g.txt", text)).notices)


def test_a_quoted_name_that_holds_a_separator_is_a_name(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path, "g.csv", 'a,b\nb,a\n"ann lee"\n"x;y"\n"p|q"\n'))
    assert graph.node_names == ("a", "ann lee", "b", "p|q", "x;y")
    assert graph.notices[0] == ("3 lines with a single name: 3 isolated nodes (ann lee, x;y, p|q)")


GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="department" attr.type="string"/>
<key id="d1" for="all" attr.name="floor"><default> 0 </default></key>
<key id="d2" for="edge" attr.name="weight"/>
<graph edgedefault="undirected">
<node id="z"><data key="d0"> sales &amp; co
</data><port name="p"><data key="d0">port</data></port></node>
<node id="a"><data key="d0">it</data><data key="d1">3</data>
  <graph><node id="m"><data key="d9">undeclared</data></node></graph><data key="d0">it</data></node>
<edge source="a" target="z"><data key="d2">5</data><data key="d0">edge</data></edge>
</graph></graphml>"""


def test_node_attributes_of_graphml(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path, "g.graphml", GRAPHML))
    assert graph.node_names == ("a", "m", "z")
    assert graph.attributes == {"department": ("it", None, "sales & co"), "floor": ("3", "0", "0")}
    assert any("not used as features: department, floor" in notice for notice in graph.notices)
    assert any("edge attributes ignored: weight" in notice for notice in graph.notices)


def test_node_attributes_are_bounded(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("lograb.graphs.formats.graphml.MAX_ATTRIBUTE_CHARS", 10)
    graph = read_graph(write(tmp_path, "g.graphml", GRAPHML))
    assert graph.attributes == {}
    assert any("not kept: more than 10 characters" in notice for notice in graph.notices)


def test_graphml_that_networkx_wrote_has_the_same_attributes(tmp_path: Path) -> None:
    source = nx.karate_club_graph()
    nx.write_graphml(source, tmp_path / "g.graphml")
    graph = read_graph(tmp_path / "g.graphml")
    assert graph.attributes["club"] == tuple(source.nodes[i]["club"] for i in range(34))
