"""Observations as arrays and back: what is handed to an attack, and nothing else.

Between the two lies a copy. Every array comes to stand in memory of its own that cannot be written to, and names,
numbers and the protocol are made anew, so that nothing in the copy is also part of an instance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from lograb.ragged import pack_names, unpack_names
from lograb.spec import Protocol
from lograb.types import Matrix, Observations

Array = npt.NDArray[Any]
Parcel = dict[str, Array]

PLAIN = ("nodes", "ptr", "ranks", "vectors", "values", "next_values", "centres")
NAMES = ("node_names", "patch_names")


def pack(seen: Observations) -> Parcel:
    """Lay observations out as arrays of numbers; the rest is JSON, as bytes."""
    parcel: Parcel = {name: array for name in PLAIN if (array := getattr(seen, name)) is not None}
    for name in NAMES:
        if (names := getattr(seen, name)) is not None:
            parcel[f"{name}_ptr"], parcel[name] = pack_names(names)
    told: dict[str, Any] = {"protocol": seen.protocol.model_dump(mode="json"), "n_nodes": seen.n_nodes}
    if sp.issparse(seen.features):
        rows = sp.csr_array(seen.features)
        parcel |= {"features_data": rows.data, "features_indices": rows.indices, "features_indptr": rows.indptr}
        told["width"] = rows.shape[1]
    elif seen.features is not None:
        parcel["features"] = seen.features
    parcel["told"] = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
    return parcel


def unpack(parcel: Mapping[str, Array]) -> Observations:
    """Build observations from their arrays, each copied into memory of its own."""
    own = {name: frozen(array) for name, array in parcel.items()}
    told = json.loads(own["told"].tobytes())
    fields: dict[str, Any] = {name: own[name] for name in PLAIN if name in own}
    fields |= {name: unpack_names(own[f"{name}_ptr"], own[name]) for name in NAMES if name in own}
    protocol = Protocol(**told["protocol"])
    return Observations(protocol, told["n_nodes"], **fields, features=_features(own, told))


def private_copy(seen: Observations) -> Observations:
    """Copy observations so that the copy shares nothing with what they were made from."""
    return unpack(pack(seen))


def frozen(array: Array) -> Array:
    """Copy an array into memory that nobody can make writeable again: that of a bytes object."""
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def _features(own: Parcel, told: dict[str, Any]) -> Matrix | None:
    if "width" not in told:
        return own.get("features")
    parts = own["features_data"], own["features_indices"], own["features_indptr"]
    features = sp.csr_array(parts, shape=(told["n_nodes"], told["width"]))
    features.data, features.indices, features.indptr = parts  # scipy may have taken copies
    return features
