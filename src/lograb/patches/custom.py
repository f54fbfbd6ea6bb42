"""Patches that a user brings along: lists, groups by name, a file of either, or an attribute of the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lograb.errors import LograbError, unknown_name
from lograb.names import shorten, sort_names
from lograb.patches.silo_file import Rows, interpret, read_patch_file
from lograb.types import Graph, Patches

Given = Patches | Mapping[Any, Any] | Iterable[Iterable[object]] | str | Path
"""Node lists, one per patch; a dict of node lists by group, or of groups by node; a file of these; `Patches`."""
LABEL = "label"
"""Cuts by the nodes' classes, where a graph has them and no attribute of this name."""


Bring = Callable[[Graph], tuple[Patches, list[str]]]
"""Makes the patches of a graph, and notices about them."""


def bring(patches: Given | None, patches_by: str | None) -> Bring | None:
    """Read what the user brings, and return what makes patches of it once there is a graph; None for nothing."""
    if patches is not None and patches_by is not None:
        raise LograbError("a graph is cut by patches or by patches_by, got both: leave one out")
    if patches_by is not None:
        return partial(_by_attribute, patches_by)
    return None if patches is None else partial(_custom, _open(patches))


def _open(given: Given) -> Any:
    """Read and check what can be read and checked before there is a graph."""
    content = read_patch_file(given) if isinstance(given, str | Path) else given
    if isinstance(content, Rows | Patches | Mapping):
        return content
    try:
        lists = list(content)
    except TypeError:
        raise LograbError("patches must be a list of node lists, a dict of them by group, or a file, got "
                          f"{type(content).__name__}") from None
    if any(map(_is_scalar, lists)):
        raise LograbError("patches is a list of node lists, one per patch; got a flat list: write [[...]] for one "
                          f"patch (got {lists!r:.60})")
    return [list(item) for item in lists]


def _custom(content: Any, graph: Graph) -> tuple[Patches, list[str]]:
    """Turn lists, groups or rows into patches of a graph.

    Nodes are looked up by name where the graph has names, by number otherwise; repetition inside a
    patch does not matter. Lists keep their order. Groups are ordered by their names, as nodes are: the order in
    which a file lists them says nothing about the graph.

    Returns
    -------
    patches : Patches
        With names where the content has them.
    notices : list of str
    """
    notices: list[str] = []
    find = _finder(graph)
    if isinstance(content, Patches):
        if content.n_nodes != graph.n_nodes:
            raise LograbError(f"patches of {content.n_nodes} nodes cannot cut the graph '{graph.name}' of "
                              f"{graph.n_nodes} nodes")
        content, names = [content[i].tolist() for i in range(len(content))], content.names
        return _look_up(content, names, graph, int), notices
    if isinstance(content, Rows):
        content, notices = interpret(content, lambda name: find(name) is not None)
    if not isinstance(content, Mapping):
        return _look_up(content, None, graph, find), notices
    patches, uncovered = _from_groups(_by_group(content), graph, find)
    return patches, notices + uncovered


def _by_attribute(name: str, graph: Graph) -> tuple[Patches, list[str]]:
    """Cut a graph by an attribute of its nodes: one patch for each value, in the order of their names."""
    attributes = dict(graph.attributes)
    if graph.labels is not None and graph.labels.ndim == 1:
        classes = tuple(None if label < 0 else str(label) for label in graph.labels)
        attributes.setdefault(LABEL, classes)
    if not attributes:
        raise LograbError(f"patches_by needs attributes of nodes, as GraphML files and networkx graphs have them; "
                          f"graph '{graph.name}' has none, got '{name}': write a table node,group and pass it as "
                          "patches (--patches FILE)")
    if name not in attributes:
        raise unknown_name("node attribute", name, attributes)
    groups = _by_group(dict(enumerate(attributes[name])))
    if not groups:
        raise LograbError(f"no node of graph '{graph.name}' has a '{name}'")
    return _from_groups(groups, graph, int)


def _from_groups(
    groups: dict[str, list[object]], graph: Graph, find: Callable[[str], int | None]
) -> tuple[Patches, list[str]]:
    """Make a patch of each group, in the order of their names, and count the nodes that are in none."""
    groups, notices = _without_strangers(groups, graph, find)
    names = tuple(sort_names(groups))
    patches = _look_up([groups[name] for name in names], names, graph, find)
    left = graph.n_nodes - len(np.unique(patches.nodes))
    is_ = "is" if left == 1 else "are"
    if left:
        notices.append(f"{left} of {graph.n_nodes} nodes {is_} in no patch: never observed")
    return patches, notices


def _without_strangers(
    groups: dict[str, list[object]], graph: Graph, find: Callable[[str], int | None]
) -> tuple[dict[str, list[object]], list[str]]:
    """Leave out members that the graph does not know: an edge list names nobody who has no edge.

    Where they are half of all members or more, it is the wrong table, and nothing is left out.
    """
    members = dict.fromkeys(str(node) for nodes in groups.values() for node in nodes)
    strangers = [name for name in members if find(name) is None]
    if not strangers or 2 * len(strangers) >= len(members):
        return groups, []
    known = {group: [node for node in nodes if find(str(node)) is not None] for group, nodes in groups.items()}
    empty = [group for group, nodes in known.items() if groups[group] and not nodes]
    is_, nodes_ = ("is", "node") if len(strangers) == 1 else ("are", "nodes")
    also = f", and with them all of {shorten(empty)}" if empty else ""
    told = [f"{len(strangers)} of {len(members)} members of groups {is_} no {nodes_} of the graph '{graph.name}' "
            f"({shorten(strangers)}): without an edge, or misspelt, and left out{also}"]  # fmt: skip
    return {group: nodes for group, nodes in known.items() if group not in empty}, told


def _by_group(content: Mapping[Any, Any]) -> dict[str, list[object]]:
    """Bring a dict to groups: it holds node lists by group, or groups by node."""
    scalars = [_is_scalar(value) for value in content.values()]
    if not any(scalars):
        groups: dict[str, list[object]] = {str(name): list(nodes) for name, nodes in content.items()}
        if len(groups) < len(content):
            raise LograbError("names of groups must differ as text, got two that do not, such as 1 and '1'")
        return groups
    if not all(scalars):
        raise LograbError("patches as a dict are node lists by group, or groups by node; got some values that are "
                          "lists and some that are not")
    groups = {}
    for node, group in content.items():
        if group is not None and group == group:  # not a number, as tables have it for a gap, is no group
            groups.setdefault(str(group), []).append(node)
    return groups


def _is_scalar(value: object) -> bool:
    """Tell a name or a number from a list of them."""
    return isinstance(value, str | bytes) or not hasattr(value, "__iter__") or getattr(value, "ndim", 1) == 0


def _look_up(
    lists: list[list[Any]], names: tuple[str, ...] | None, graph: Graph, find: Callable[[str], int | None]
) -> Patches:
    if not lists:
        raise LograbError("the strategy 'custom' needs at least one patch, got none")
    ids: list[list[int]] = []
    missing: dict[str, str] = {}
    for number, nodes in enumerate(lists):
        patch = f"patch {number}" if names is None else f"the group '{names[number][:60]}'"
        if not nodes:
            raise LograbError(f"{patch} has no nodes: leave it out")
        found = [find(str(node)) for node in nodes]
        missing |= {str(node): patch for node, i in zip(nodes, found, strict=True) if i is None}
        ids.append([i for i in found if i is not None])
    if missing:
        raise _unknown_nodes(graph, missing)
    return Patches.from_lists(graph.n_nodes, ids, names=names)


def _unknown_nodes(graph: Graph, missing: dict[str, str]) -> LograbError:
    first, patch = next(iter(missing.items()))
    known = "node names" if graph.node_names is not None else f"nodes 0 .. {graph.n_nodes - 1}"
    rest = list(missing)[1:]
    others = f", nor {'is' if len(rest) == 1 else 'are'} {shorten(rest)} ({len(rest)} more)" if rest else ""
    return LograbError(f"{patch} names the node '{first[:60]}', which is not among the {known} of graph "
                       f"'{graph.name}'{others}: take them out, or add them to the graph, in an edge list each "
                       "alone on a line")


def _finder(graph: Graph) -> Callable[[str], int | None]:
    """Make the function from a node's name to its number, None for what is no node."""
    if graph.node_names is not None:
        return {name: i for i, name in enumerate(graph.node_names)}.get

    def find(name: str) -> int | None:
        short = name.isascii() and name.isdigit() and len(name) < 20
        return int(name) if short and name == str(int(name)) and int(name) < graph.n_nodes else None

    return find
