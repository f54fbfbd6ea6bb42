"""Patches that a user brings: lists, groups by name, files of either, attributes of nodes."""

import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lograb
from lograb.errors import LograbError
from lograb.patches import bring

NAMES = ("ann", "bob", "eve", "joe", "zoe")
# bob is in two groups, zoe in none.
GROUPS = {"it": ["bob", "eve"], "sales": ["ann", "bob"], "hr": ["joe"]}
EXPECTED = {"hr": [3], "it": [1, 2], "sales": [0, 1]}
LINES = [(node, group) for group, nodes in GROUPS.items() for node in nodes]


@pytest.fixture
def named():
    return lograb.Graph.from_edges("g", 5, [(0, 1), (1, 2), (2, 3), (3, 4)], node_names=NAMES)


def cut(graph, patches=None, patches_by=None):
    return bring(patches, patches_by)(graph)


def as_lists(patches):
    return [patches[i].tolist() for i in range(len(patches))]


def as_dict(patches):
    return dict(zip(patches.names, as_lists(patches)))


def write(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize("mark", [",", "\t", ";", " ", ", ", " ; "])
@pytest.mark.parametrize("header", [None, ("node", "group"), ("Staff ID", "Dept."), ("wer", "silo"), ("id", "wo")])
@pytest.mark.parametrize("quoted", [False, True])
def test_tables_of_groups(named, tmp_path, mark, header, quoted):
    rows = LINES if header is None else [header, *LINES]
    if mark == " " and not quoted:
        rows = [tuple(name.replace(" ", "") for name in row) for row in rows]
    quote = '"{}"' if quoted else "{}"
    text = "\n".join(mark.join(quote.format(name) for name in row) for row in rows)
    patches, notices = cut(named, write(tmp_path, "p.csv", f"# silos\n\n{text}\n"))
    assert as_dict(patches) == EXPECTED
    assert patches.names == ("hr", "it", "sales")
    guessed = header in (None, ("id", "wo"))
    assert any("read as a table node,group with 3 groups" in notice for notice in notices) == guessed
    assert any("line 3 as its header" in notice for notice in notices) == (header == ("id", "wo"))
    assert "1 of 5 nodes is in no patch: never observed" in notices


@given(st.permutations(LINES))
def test_the_order_of_a_table_does_not_matter(lines):
    graph = lograb.Graph.from_edges("g", 5, [(0, 1)], node_names=NAMES)
    groups = {}
    for node, group in lines:
        groups.setdefault(group, []).append(node)
    patches, _ = cut(graph, groups)
    assert list(as_dict(patches).items()) == list(EXPECTED.items())


def test_groups_that_are_numbers_are_ordered_as_numbers(named):
    patches, _ = cut(named, {"ann": 10, "bob": 9, "eve": 2, "joe": 10, "zoe": 9})
    assert patches.names == ("2", "9", "10")
    assert as_lists(patches) == [[2], [1, 4], [0, 3]]


def test_dicts_say_groups_by_node_or_nodes_by_group(named, tmp_path):
    by_node = {"ann": "sales", "bob": "it", "eve": "it", "joe": None, "zoe": float("nan")}
    patches, notices = cut(named, by_node)
    assert as_dict(patches) == {"it": [1, 2], "sales": [0]}
    assert notices == ["2 of 5 nodes are in no patch: never observed"]
    for groups in (GROUPS, {key: set(nodes) for key, nodes in GROUPS.items()},
                   {key: np.array(nodes) for key, nodes in GROUPS.items()},
                   write(tmp_path, "p.json", json.dumps(GROUPS))):  # fmt: skip
        assert as_dict(cut(named, groups)[0]) == EXPECTED
    assert as_dict(cut(named, write(tmp_path, "q.json", '{"ann": "x", "bob": "y"}'))[0]) == {"x": [0], "y": [1]}


def test_lists_keep_their_order_and_have_no_names(named, tmp_path):
    lists = [["zoe", "ann", "bob"], ["eve", "bob", "bob"]]
    texts = {"p.txt": "# clients\nzoe, ann, bob\n\neve bob bob\n", "p.json": json.dumps(lists),
             "p.csv": '"zoe",ann,bob\n"eve" , bob, bob\n', "p.tsv": "zoe\tann\tbob\neve\tbob\t\n"}  # fmt: skip
    for given_lists in (lists, *(write(tmp_path, name, text) for name, text in texts.items())):
        patches, notices = cut(named, given_lists)
        assert as_lists(patches) == [[0, 1, 4], [1, 2]]
        assert patches.names is None
        assert notices == []
    assert as_lists(cut(named, write(tmp_path, "one.txt", "ann\nbob\n"))[0]) == [[0], [1]]
    assert as_lists(cut(named, write(tmp_path, "one.csv", "ann,\nbob,\n"))[0]) == [[0], [1]]


def test_numbers_are_nodes_of_graphs_without_names():
    graph = lograb.load_graph("karate")
    whole = lograb.Patches.from_lists(34, [[0, 1], [33]], names=("a", "b"))
    for patches in ([[0, 1], [33]], [range(2), np.array([33])], {"a": [1, 0], "b": (33,)}, whole):
        assert as_lists(cut(graph, patches)[0]) == [[0, 1], [33]]
    assert cut(graph, whole)[0].names == ("a", "b")


@pytest.mark.parametrize("text", ["ann,bob\nbob,eve\n", "ann bob\n", "ann,bob\nbob,evee\n", "user,pal\nann,bob\n"])
def test_pairs_of_nodes_are_not_guessed_to_be_a_table(named, tmp_path, text):
    with pytest.raises(LograbError, match="a table node,group, or patches of two nodes"):
        cut(named, write(tmp_path, "p.csv", text))
    if "evee" not in text and "user" not in text:
        patches, notices = cut(named, write(tmp_path, "p.csv", "node,group\n" + text))
        assert set(patches.names) <= set(NAMES)
        assert not any("read as" in notice for notice in notices)


def test_numbered_nodes_and_numbered_groups_need_a_header(tmp_path):
    graph = lograb.load_graph("karate")
    text = "".join(f"{node} {node % 3}\n" for node in range(34))
    with pytest.raises(LograbError, match="3 of the 3 different second ones are nodes"):
        cut(graph, write(tmp_path, "p.txt", text))
    patches, _ = cut(graph, write(tmp_path, "p.txt", "node community\n" + text))
    assert as_dict(patches) == {str(i): list(range(i, 34, 3)) for i in range(3)}


def test_a_node_named_like_a_header_is_a_node(tmp_path):
    graph = lograb.Graph.from_edges("g", 2, [(0, 1)], node_names=("id", "x"))
    assert as_dict(cut(graph, write(tmp_path, "p.csv", "id,team\nx,team\n"))[0]) == {"team": [0, 1]}


@pytest.mark.parametrize(
    ("patches", "message"),
    [
        ([["ann", "zoé"], ["max"]], "patch 0 names the node 'zoé', which is not among .*, nor is max .1 more."),
        ({"it": ["ann"], "hr": ["max"]}, "the group 'hr' names the node 'max'"),
        ([["0"]], "not among the node names"),
        ([["ann"], []], "patch 1 has no nodes"),
        ({"it": []}, "the group 'it' has no nodes"),
        ([], "at least one patch"),
        ({}, "at least one patch"),
        (["ann", "bob"], r"got a flat list: write \[\[...\]\] for one patch"),
        ([1, 2, 3], "flat list"),
        (np.arange(3), "flat list"),
        (7, "must be a list of node lists.*got int"),
        ({"it": ["ann"], "bob": "hr"}, "some values that are lists and some that are not"),
        ({1: ["ann"], "1": ["bob"]}, "differ as text"),
        (lograb.Patches.from_lists(4, [[0]]), "patches of 4 nodes cannot cut the graph 'g' of 5 nodes"),
    ],
)
def test_patches_that_are_refused(named, patches, message):
    with pytest.raises(LograbError, match=message):
        cut(named, patches)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.csv", "node,group\nann,it\nmax,it\nliz,hr\n", "names the node 'liz'.*, nor is \\w+ .1 more."),
        ("p.csv", "ann,it\nmax,it\n", "the group 'it' names the node 'max'"),
        ("p.csv", "node,group\nann,it\nbob,it,hr\n", "line 3: every line of a table .* got 3"),
        ("p.csv", "node,group\nann,it\n,it\n", "line 3"),
        ("p.csv", "node,group\n", "at least one patch"),
        ("p.csv", "id,name,department\n1,ann,it\n", "has two columns, .* got 3: id, name, department"),
        ("p.csv", 'ann,"it\n', "line 1: quotes must be balanced"),
        ("p.csv", "# nobody\n", "at least one patch"),
        ("p.csv", "max,it\nliz,hr\n", "patch 0 names the node 'max'"),
        ("p.json", "[1, 2", "not valid JSON"),
        ("p.json", "[1, 2]", "flat list"),
        ("p.json", "3", "must hold a list of node lists"),
        ("p.json", '{"it": ["ann"], "it": ["bob"]}', "every key once, got 'it' again"),
    ],
)
def test_files_that_are_refused(named, tmp_path, name, text, message):
    with pytest.raises(LograbError, match=message):
        cut(named, write(tmp_path, name, text))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(LograbError, match="cannot read the patches"):
        bring(tmp_path / "none.csv", None)
    (tmp_path / "p.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(LograbError, match="not UTF-8"):
        bring(tmp_path / "p.csv", None)


def test_members_without_an_edge_are_counted_and_left_out(named, tmp_path):
    text = "node,group\nann,it\nbob,it\nmax,it\neve,hr\nliz,pr\n"
    patches, notices = cut(named, write(tmp_path, "p.csv", text))
    assert patches.names == ("hr", "it")
    assert [[NAMES[i] for i in nodes] for nodes in as_lists(patches)] == [["eve"], ["ann", "bob"]]
    assert notices[0] == ("2 of 5 members of groups are no nodes of the graph 'g' (max, liz): without an edge, or "
                          "misspelt, and left out, and with them all of pr")


@pytest.fixture
def club():
    source = nx.karate_club_graph()
    del source.nodes[5]["club"]
    return source


def test_an_attribute_cuts_by_its_values(club):
    patches, notices = cut(lograb.load_graph(club), patches_by="club")
    assert patches.names == ("Mr. Hi", "Officer")
    clubs = nx.get_node_attributes(club, "club")
    assert as_lists(patches) == [[i for i in clubs if clubs[i] == name] for name in patches.names]
    assert notices == ["1 of 34 nodes is in no patch: never observed"]


def test_classes_are_an_attribute():
    graph = lograb.load_graph("karate")
    patches, _ = cut(graph, patches_by="label")
    assert patches.names == ("0", "1")
    assert as_lists(patches) == [np.flatnonzero(graph.labels == i).tolist() for i in range(2)]


def test_attributes_that_are_not_there(club, named):
    with pytest.raises(LograbError, match="unknown node attribute 'clubs'. Did you mean 'club'"):
        cut(lograb.load_graph(club), patches_by="clubs")
    with pytest.raises(LograbError, match="graph 'g' has none.*write a table node,group"):
        cut(named, patches_by="club")
    with pytest.raises(LograbError, match="got both"):
        bring([[0]], "club")
