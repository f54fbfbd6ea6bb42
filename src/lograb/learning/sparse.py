"""Sparse matrices in torch: products whose gradients never make a transpose.

The autoencoders, SEAL and Neo-GNN are convolutions written with these products, not PyG's layers: theirs go edge
by edge, and torch's own sparse product transposes its matrix at every backward pass. Here the transpose is given.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from lograb.types import Ints


def propagation_matrix(adjacency: sp.csr_array) -> sp.csr_array:
    """Add loops and normalise: D^(-1/2) (A + I) D^(-1/2)."""
    n = adjacency.shape[0]
    looped = sp.csr_array(adjacency.astype(np.float32) + sp.eye_array(n, dtype=np.float32, format="csr"))
    scale = sp.diags_array(1 / np.sqrt(np.asarray(looped.sum(axis=1)).ravel()))
    return sp.csr_array(scale @ looped @ scale).astype(np.float32)


def to_torch(matrix: Any, device: torch.device) -> Tensor:
    """Turn a scipy matrix into a torch one in CSR format, float32."""
    matrix = sp.csr_array(matrix)
    return compressed_rows(matrix.indptr, matrix.indices, matrix.data, matrix.shape, device)


def compressed_rows(ptr: Ints, columns: Ints, values: Any, shape: tuple[int, int], device: torch.device) -> Tensor:
    """Build a torch matrix in CSR format, float32."""
    rows, places = torch.from_numpy(np.asarray(ptr, np.int64)), torch.from_numpy(np.asarray(columns, np.int64))
    numbers = torch.from_numpy(np.asarray(values, np.float32))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(rows, places, numbers, size=shape).to(device)


class _SparseProduct(torch.autograd.Function):
    """Sparse times dense; the gradient uses the stored transpose instead of making one each time."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, dense: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transposed @ gradient


def sparse_product(matrix: Tensor, transposed: Tensor, dense: Tensor) -> Tensor:
    """Multiply a constant sparse matrix, given with its transpose, by a dense one that may be learned."""
    return _SparseProduct.apply(matrix, transposed, dense)  # type: ignore[no-any-return, no-untyped-call]
