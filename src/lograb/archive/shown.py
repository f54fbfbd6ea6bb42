"""From columns back to observations: what does not hold together is refused before anybody computes with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lograb.archive import schema
from lograb.archive.manifest import Manifest
from lograb.errors import ArchiveError, LograbError
from lograb.ragged import owners, pointer, unpack_names
from lograb.types import Ints, Matrix, Observations, check_names


def read_names(columns: dict[str, Any], pointer_column: str, column: str) -> tuple[str, ...] | None:
    """Read names, which must be distinct, from their columns; None where there are none."""
    ptr = columns.get(pointer_column)
    try:
        names = None if ptr is None else unpack_names(ptr, columns[column])
        check_names(schema.part(column), names, len(names or ()))
        return names
    except UnicodeDecodeError:
        raise ArchiveError(f"{column}.npy", "is not UTF-8") from None
    except LograbError as error:
        raise ArchiveError(f"{column}.npy", str(error)) from None


def read_shown(manifest: Manifest, n_nodes: int, columns: dict[str, Any]) -> Observations:
    """Build observations of one graph, or of one patch, from their columns, each under its name in the tables."""
    if schema.NEXT_VALUES in columns and schema.VALUES not in columns:
        raise ArchiveError(f"{schema.NEXT_VALUES}.npy", "must not be there: it holds exact eigenvalues, and these "
                           "are withheld; make the file anew")  # fmt: skip
    ranks = np.diff(columns[schema.VALUE_PTR])
    try:
        seen = Observations(manifest.spec.protocol, n_nodes, columns[schema.MEMBERS], columns[schema.PTR], ranks,
                            columns[schema.VECTORS], columns.get(schema.VALUES), columns.get(schema.NEXT_VALUES),
                            columns.get(schema.CENTRES), None, read_names(columns, schema.NAME_PTR, schema.NAMES),
                            read_names(columns, schema.PATCH_NAME_PTR, schema.PATCH_NAMES))  # fmt: skip
    except ArchiveError:
        raise
    except LograbError as error:
        raise ArchiveError("observations", str(error)) from None
    _check_ranks(seen, manifest.spec.k, columns[schema.VECTOR_PTR], manifest.origin.kind == "packed")
    _check_values(seen)
    if seen.centre_entries is not None and (seen.centre_entries < 0).any():
        raise ArchiveError(f"{schema.CENTRES}.npy", "a centre must be a member of its patch")
    return seen


def read_features(manifest: Manifest, n_nodes: int, columns: dict[str, Any]) -> Matrix | None:
    """Read node features, dense or CSR; None where there are none."""
    if not columns:
        return None
    width, member = manifest.n_features, schema.FEATURES if schema.FEATURES in columns else schema.FEATURE_WEIGHTS
    entries = columns[member]
    if not np.isfinite(entries).all():
        raise ArchiveError(f"{member}.npy", "must hold finite numbers")
    if member == schema.FEATURES:
        if entries.shape[1] != width:
            raise ArchiveError("manifest.json", f"tells of {width} features where there are {entries.shape[1]}")
        return entries
    numbers = columns[schema.FEATURE_COLUMNS]
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < width:
        raise ArchiveError(f"{schema.FEATURE_COLUMNS}.npy", f"names columns beyond the {width} there are")
    if width > max(schema.FREE_FEATURES, schema.FEATURES_PER_ENTRY * len(entries)):
        raise ArchiveError("manifest.json", f"claims more features, {width}, than {len(entries)} entries warrant")
    return sp.csr_array((entries, numbers, columns[schema.FEATURE_PTR]), shape=(n_nodes, width))


def _check_ranks(seen: Observations, k: int, vector_ptr: Ints, packed: bool) -> None:
    fit = ((seen.ranks >= 1) & (seen.ranks <= k)) if packed else seen.ranks == np.minimum(seen.sizes, k)
    if not fit.all():
        rule = "lie in 1 .. k" if packed else "be min(k, size)"
        raise ArchiveError(f"{schema.VALUE_PTR}.npy", f"ranks must {rule} with k = {k}")
    if not np.array_equal(vector_ptr, pointer(seen.ranks * seen.sizes)):
        raise ArchiveError(f"{schema.VECTOR_PTR}.npy", "does not follow from the patches' sizes and ranks")


def _check_values(seen: Observations) -> None:
    if seen.values is None:
        return
    falls = (np.diff(seen.values) < 0) & (np.diff(owners(seen.value_ptr)) == 0)
    if falls.any() or (seen.values < 0).any() or (seen.values > 2).any():
        raise ArchiveError(f"{schema.VALUES}.npy", "eigenvalues must ascend inside each patch, from 0 to 2")
    if seen.next_values is None:
        return
    if not np.array_equal(np.isnan(seen.next_values), seen.complete):
        raise ArchiveError(f"{schema.NEXT_VALUES}.npy", "must be NaN exactly where a spectrum is complete")
    last = np.append(seen.values, 0.0)[seen.value_ptr[1:] - 1]
    if ((seen.next_values < last) | (seen.next_values > 2)).any():
        raise ArchiveError(f"{schema.NEXT_VALUES}.npy", "must lie between the last eigenvalue of a patch and 2")
