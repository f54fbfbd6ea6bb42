"""GraphML files: nodes, edges, and the attributes of nodes as text.

The reader listens to the parser's events and keeps only ids and node attributes. Document type
declarations are refused, because entities can make a small file expand without limit.
"""

from __future__ import annotations

from xml.parsers import expat

import numpy as np

from lograb.errors import LograbError
from lograb.graphs.formats.simple import MAX_ATTRIBUTE_CHARS, Listing, RawGraph, collect_attributes
from lograb.names import index_names

_SEPARATOR = " "


class _Attributes:
    """The attributes of nodes: keys by their ids, and texts by key and node."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.defaults: dict[str, str] = {}
        self.texts: dict[str, dict[str, str]] = {}
        self.size = 0
        self._known: dict[str, str] = {}

    def add(self, key: str, node: str, text: str) -> None:
        """Keep a text, unless there are too many; equal texts are kept once."""
        self.size += len(text)
        if self.size <= MAX_ATTRIBUTE_CHARS:
            self.texts.setdefault(key, {})[node] = self._known.setdefault(text, text)

    def by_name(self, index: dict[str, int]) -> dict[str, dict[int, str]]:
        """Give for every attribute the texts of the nodes that have one."""
        if self.size > MAX_ATTRIBUTE_CHARS:
            return {}
        found: dict[str, dict[int, str]] = {}
        for key, name in self.names.items():
            texts = found.setdefault(name, {})
            if key in self.defaults:
                texts.update(dict.fromkeys(index.values(), self.defaults[key]))
            texts.update({index[node]: text for node, text in self.texts.get(key, {}).items()})
        return found


class _Listener:
    """Collects what the parser reports; nested graphs count as one."""

    def __init__(self, parser: expat.XMLParserType) -> None:
        self.parser = parser
        self.nodes: dict[str, None] = {}
        self.edges: list[tuple[str, str, int]] = []
        self.directions: set[bool] = set()
        self.edge_attributes: list[str] = []
        self.attributes = _Attributes()
        self.open: list[tuple[str, str]] = []  # elements around the current place, each with its id or key
        self.directed: list[bool] = []  # graphs around the current place
        self.n_graphs = 0
        self.text: list[str] = []

    def start(self, tag: str, values: dict[str, str]) -> None:
        name = tag.rsplit(_SEPARATOR, 1)[-1]
        if not self.open and name != "graphml":
            raise self.error(f"a GraphML file must start with <graphml>, got <{name[:60]}>")
        if name == "graph":
            self.n_graphs += not self.directed
            self.directed.append(values.get("edgedefault", "undirected") == "directed")
        elif name == "key":
            self.add_key(values)
        elif name in ("node", "edge", "hyperedge") and not self.directed:
            raise self.error(f"<{name}> must stand inside <graph>")
        elif name == "node":
            self.add_node(values)
        elif name == "edge":
            self.add_edge(values)
        elif name == "hyperedge":
            raise self.error("an edge must join two nodes, got a <hyperedge>: replace it by edges")
        elif self.has_text(name):
            self.text = []
            self.parser.CharacterDataHandler = self.text.append
        self.open.append((name, values.get("key" if name == "data" else "id", "")))

    def has_text(self, name: str) -> bool:
        """Tell whether an element that starts or ended here holds a node's attribute, or its default."""
        return bool(self.open) and (name, self.open[-1][0]) in (("data", "node"), ("default", "key"))

    def end(self, tag: str) -> None:
        name, key = self.open.pop()
        if name == "graph":
            self.directed.pop()
        elif self.has_text(name):
            self.parser.CharacterDataHandler = None
            owner, text = self.open[-1][1], "".join(self.text).strip()
            if text and name == "data":
                self.attributes.add(key, owner, text)
            elif text:
                self.attributes.defaults[owner] = text

    def add_key(self, values: dict[str, str]) -> None:
        name, domain = values.get("attr.name", values.get("id", "?")), values.get("for", "all")
        if domain in ("node", "all"):
            self.attributes.names[values.get("id", "")] = name
        if domain == "edge":
            self.edge_attributes.append(name)

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
        self.directions.add(self.directed[-1] if directed is None else directed == "true")
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
    notices = []
    if listener.attributes.size > MAX_ATTRIBUTE_CHARS:
        notices.append(f"node attributes not kept: more than {MAX_ATTRIBUTE_CHARS} characters")
    if listener.edge_attributes:
        notices.append(f"edge attributes ignored: {', '.join(listener.edge_attributes)[:120]}")
    listing: Listing = "directed" if True in listener.directions else "undirected"
    return RawGraph(len(index), pairs.reshape(-1, 2), listing, node_names=node_names, notices=tuple(notices),
                    attributes=collect_attributes(listener.attributes.by_name(index), len(index)))
