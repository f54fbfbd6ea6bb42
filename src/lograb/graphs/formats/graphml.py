"""GraphML files: nodes and edges; attributes are not read.

The reader listens to the parser's events and keeps only ids. Document type declarations are
refused, because entities can make a small file expand without limit.
"""

from __future__ import annotations

from xml.parsers import expat

import numpy as np

from lograb.errors import LograbError
from lograb.graphs.formats.simple import Listing, RawGraph, index_names

_SEPARATOR = " "


class _Listener:
    """Collects what the parser reports; nested graphs count as one."""

    def __init__(self, parser: expat.XMLParserType) -> None:
        self.parser = parser
        self.nodes: dict[str, None] = {}
        self.edges: list[tuple[str, str, int]] = []
        self.directions: set[bool] = set()
        self.attributes: dict[str, list[str]] = {"node": [], "edge": []}
        self.depth = 0
        self.graph_depths: list[tuple[int, bool]] = []
        self.n_graphs = 0

    def start(self, tag: str, values: dict[str, str]) -> None:
        name = tag.rsplit(_SEPARATOR, 1)[-1]
        if self.depth == 0 and name != "graphml":
            raise self.error(f"a GraphML file must start with <graphml>, got <{name[:60]}>")
        self.depth += 1
        if name == "graph":
            self.n_graphs += not self.graph_depths
            self.graph_depths.append((self.depth, values.get("edgedefault", "undirected") == "directed"))
        elif name == "key" and values.get("for") in self.attributes:
            self.attributes[values["for"]].append(values.get("attr.name", values.get("id", "?")))
        elif name in ("node", "edge", "hyperedge") and not self.graph_depths:
            raise self.error(f"<{name}> must stand inside <graph>")
        elif name == "node":
            self.add_node(values)
        elif name == "edge":
            self.add_edge(values)
        elif name == "hyperedge":
            raise self.error("an edge must join two nodes, got a <hyperedge>: replace it by edges")

    def end(self, tag: str) -> None:
        if self.graph_depths and self.graph_depths[-1][0] == self.depth:
            self.graph_depths.pop()
        self.depth -= 1

    def add_node(self, values: dict[str, str]) -> None:
        if "id" not in values:
            raise self.error("a node needs an id")
        if values["id"] in self.nodes:
            raise self.error(f"a node id must occur once, got '{values['id'][:60]}' again")
        self.nodes[values["id"]] = None

    def add_edge(self, values: dict[str, str]) -> None:
        if "source" not in values or "target" not in values:
            raise self.error("an edge needs a source and a target")
        directed = values.get("directed")
        self.directions.add(self.graph_depths[-1][1] if directed is None else directed == "true")
        self.edges.append((values["source"], values["target"], self.parser.CurrentLineNumber))

    def refuse(self, *_: object) -> None:
        raise self.error("a GraphML file must not declare a document type or entities: remove <!DOCTYPE ...>")

    def error(self, text: str) -> LograbError:
        return LograbError(f"line {self.parser.CurrentLineNumber}: {text}")


def read_graphml(data: bytes) -> RawGraph:
    """Read the one graph of a GraphML file."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    listener = _Listener(parser)
    parser.StartElementHandler = listener.start
    parser.EndElementHandler = listener.end
    parser.StartDoctypeDeclHandler = listener.refuse
    parser.EntityDeclHandler = listener.refuse
    try:
        parser.Parse(data, True)
    except LograbError:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise LograbError(f"not well-formed XML: {error}") from None
    if listener.n_graphs != 1:
        raise LograbError(f"a GraphML file must hold one graph, got {listener.n_graphs}: split the file")
    return _collect(listener)


def _collect(listener: _Listener) -> RawGraph:
    index, node_names = index_names(listener.nodes)
    for source, target, line in listener.edges:
        for name in (source, target):
            if name not in index:
                raise LograbError(f"line {line}: an edge must join declared nodes, got '{name[:60]}'")
    pairs = np.array([(index[source], index[target]) for source, target, _ in listener.edges], dtype=np.int64)
    notices = tuple(f"{kind} attributes ignored: {', '.join(names)[:120]}"
                    for kind, names in listener.attributes.items() if names)
    listing: Listing = "directed" if True in listener.directions else "undirected"
    return RawGraph(len(index), pairs.reshape(-1, 2), listing, node_names=node_names, notices=notices)
