"""Is an embedding that was made elsewhere what lograb takes it for?

Attacks read the bottom of the spectrum of the symmetric normalised Laplacian L = I - D^(-1/2) A D^(-1/2). Whoever
computes something else gets a low score and a false sense of safety. What can be proved wrong is refused, with the
likely cause; what only looks odd is a notice. The proofs:

- L has eigenvalues in [0, 2], and 0 is one of them; they add up to at most the number of members.
- Columns are orthonormal. Noise of standard deviation σ on q members turns UᵀU into (1 + qσ²) I, up to departures
  of size σ off the diagonal.
- The eigenvalue 0 of a connected patch belongs to the column √degree: one sign, squares proportional to whole
  numbers.
- A complete spectrum gives all of L, whose diagonal is 1, or 0 on an isolated member.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lograb.errors import LograbError, warn

Floats = npt.NDArray[np.float64]

LOOSE = 1e-4
"""What single precision and iterative solvers may do to an eigenvalue."""
ZERO = 1e-6
"""Eigenvalues below this belong to the space of the eigenvalue 0."""
EXACT = 1e-4
"""Columns whose inner products are smaller than this (root mean square) carry no noise."""
CONSTANT = 1e-5
"""Relative spread of a column that counts as constant."""
WHOLE = 0.02
"""Distance from a whole number that a degree may have."""
DROWNED = 1.0
"""σ² q, the squared length of the noise in a column, from which columns are hardly taken for eigenvectors."""
RANDOM_WALK = "pass laplacian='random-walk' (lograb pack --laplacian random-walk)"
SMALL = 7
"""Patches of at most so many members are often regular graphs: most must be, to be worth a notice."""
MAX_SCALE = 1000
"""Smallest degrees tried when squares are compared with whole numbers."""
TESTED, ROWS, SECONDS = 4, 1000, 2.0
"""Patches on which a missing first column is looked for, members of each that are looked at, and time for each."""

MAKE_SYMMETRIC = ("compute the symmetric normalised one, with numpy.linalg.eigh of "
                  "scipy.sparse.csgraph.laplacian(A, normed=True)")  # fmt: skip
KEEP_FIRST = ("keep the smallest eigenvalues, the first column included (which='SA' for eigsh, drop_first=False "
              "for sklearn)")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Block:
    """One patch as its owner computed it."""

    label: str  # what messages call it
    vectors: Floats  # (q, r)
    values: Floats | None = None  # (r,), ascending; None when withheld
    next_value: float = float("nan")  # the first eigenvalue that was cut off, or NaN
    degrees: Floats | None = None  # (q,), needed by some conversions

    @property
    def complete(self) -> bool:
        """Whether the whole spectrum is shown."""
        return bool(len(self.vectors) == self.vectors.shape[1])

    @property
    def spectrum(self) -> Floats:
        """The eigenvalues, empty when withheld."""
        return np.empty(0) if self.values is None else self.values

    @property
    def zeros(self) -> int:
        """How many eigenvalues are 0."""
        return int((self.spectrum < ZERO).sum())


def check(blocks: list[Block], sigma: float | None, gauge: str) -> None:
    """Refuse blocks that are no bottom of a normalised Laplacian's spectrum; warn of what looks odd.

    Sigma is the announced noise, if any. In the gauge ``rotation`` columns are no eigenvectors, and only their
    span is judged.
    """
    valued = [block for block in blocks if block.values is not None]
    if valued:
        _check_range(valued)
        _check_zero(valued)
        _refuse([b for b in valued if _exceeds_trace(b)], "the eigenvalues of a normalised Laplacian, with those "
                "that were cut off, add up to at most the number of members, and these exceed it, as for the "
                "unnormalised Laplacian D - A", MAKE_SYMMETRIC)  # fmt: skip
    exact = [block for block in blocks if is_orthonormal(block.vectors)]
    if len(exact) < len(blocks):
        _check_columns([block for block in blocks if not is_orthonormal(block.vectors)])
        _check_noise(blocks, sigma)
    if gauge != "rotation":
        _refuse([b for b in exact if b.zeros == 1 and _is_mixed(b.vectors[:, 0])],
                "the column of the eigenvalue 0 is √degree, of one sign, and here it has both: eigenvalues and "
                "columns do not belong together", "sort them alike, by numpy.argsort(values)")  # fmt: skip
        _refuse([b for b in exact if _has_odd_diagonal(b)], "the diagonal of a normalised Laplacian is 1, and "
                "that of the matrix with this spectrum is not, as with loops (A + I) or for the unnormalised "
                "Laplacian D - A", f"leave loops out and {MAKE_SYMMETRIC}")  # fmt: skip
        _check_degrees([block for block in exact if len(block.vectors) > 3])
    _check_first([block for block in exact if block.values is None and not block.complete])


def _refuse(found: list[Block], problem: str, remedy: str) -> None:
    if found:
        where = found[0].label + (f" and {len(found) - 1} more" if len(found) > 1 else "")
        raise LograbError(f"{where}: {problem}: {remedy}")


def _check_range(blocks: list[Block]) -> None:
    """Eigenvalues lie in [0, 2]."""
    low, high = min(b.spectrum[0] for b in blocks), max(b.spectrum[-1] for b in blocks)
    if low < -LOOSE and high <= 1 + LOOSE:
        raise LograbError(f"a Laplacian has no negative eigenvalue, got {low:.4g}, and none above 1: these look "
                          "like eigenvalues of I - L, the normalised adjacency matrix. Keep the largest of them "
                          "and pass laplacian='similarity'")  # fmt: skip
    if low < -LOOSE:
        raise LograbError(f"a Laplacian has no negative eigenvalue, got {low:.4g}: these look like eigenvalues of "
                          f"an adjacency matrix; {MAKE_SYMMETRIC}")  # fmt: skip
    if high > 2 + LOOSE:
        raise LograbError(f"a normalised Laplacian has no eigenvalue above 2, got {high:.4g}: these look like "
                          "those of the unnormalised Laplacian D - A (networkx.laplacian_matrix, "
                          "csgraph.laplacian without normed=True) or of an adjacency matrix; "
                          f"{MAKE_SYMMETRIC}")  # fmt: skip


def _check_zero(blocks: list[Block]) -> None:
    """The smallest eigenvalue is 0."""
    found = [b for b in blocks if b.spectrum[0] > LOOSE]
    if found and all(abs(b.spectrum[-1] - 1) < LOOSE for b in blocks):
        raise LograbError("the smallest eigenvalue of a Laplacian is 0, and here the largest is 1 in every patch: "
                          "these look like eigenvalues of I - L. Pass laplacian='similarity'")  # fmt: skip
    rule = "the smallest eigenvalue of a Laplacian is 0, and here"
    _refuse([b for b in found if b.spectrum[0] > 1],
            f"{rule} all are above 1: the largest were kept instead of the smallest", KEEP_FIRST)  # fmt: skip
    _refuse(found, f"{rule} it is {found[0].spectrum[0]:.4g}: the first eigenvector was dropped" if found else "",
            f"{KEEP_FIRST}. If the eigenvalues are noisy, leave them out")  # fmt: skip


def _exceeds_trace(block: Block) -> bool:
    """The diagonal of L is at most 1, so all eigenvalues, the hidden ones included, add up to at most q."""
    q, r = block.vectors.shape
    rest = np.nanmax([block.spectrum[-1], block.next_value])
    return bool(block.spectrum.sum() + (q - r) * rest > q * (1 + LOOSE))


def is_orthonormal(vectors: Floats) -> bool:
    """Whether the columns are orthonormal up to rounding."""
    lengths, off, _ = _moments(vectors)
    return off < EXACT**2 and bool(np.abs(lengths - 1).max(initial=0) < 1e-3)


def _moments(vectors: Floats) -> tuple[Floats, float, int]:
    """Squared lengths of the columns; mean square and number of their inner products."""
    gram = vectors.T @ vectors
    lengths = np.diagonal(gram)
    count = len(gram) * (len(gram) - 1) // 2
    return lengths, float(((gram**2).sum() - (lengths**2).sum()) / max(2 * count, 1)), count


def _check_columns(blocks: list[Block]) -> None:
    """Name what is no noise: rescaled columns, rescaled rows, another inner product."""
    scaled, rows, walks = [], [], []
    for block in blocks:
        q, r = block.vectors.shape
        lengths, off, _ = _moments(block.vectors)
        if off <= (EXACT * lengths.max()) ** 2:
            scaled.append(block)
        elif 2 <= r < q and np.ptp((block.vectors**2).sum(axis=1)) < CONSTANT:
            rows.append(block)
        elif q > 2 and _is_constant(block.vectors[:, 0]):
            walks.append(block)
    _refuse(rows, "all rows have the same length: they were normalised, as in spectral clustering, which cannot "
            "be undone", "give the eigenvectors themselves, columns of length 1")  # fmt: skip
    _refuse(walks, "the first column is constant and the columns are not orthogonal, as for the random-walk "
            "Laplacian I - D⁻¹A (sklearn's spectral_embedding)", RANDOM_WALK)  # fmt: skip
    scaled = scaled if len(scaled) == len(blocks) else []
    _refuse(scaled, "eigenvectors have length 1, and these columns are orthogonal but of other lengths",
            "divide each by its length, V / numpy.linalg.norm(V, axis=0)")  # fmt: skip


def _is_constant(column: Floats) -> bool:
    return bool(np.ptp(column) <= CONSTANT * np.abs(column).max())


def _check_noise(blocks: list[Block], sigma: float | None) -> None:
    """Departures from orthonormality must look like noise: its size off the diagonal explains the lengths."""
    sizes, ranks = np.array([block.vectors.shape for block in blocks], dtype=float).T
    moments = [_moments(block.vectors) for block in blocks]
    off, count = np.array([m[1] for m in moments]), np.array([m[2] for m in moments])
    own = (np.sqrt(1 + sizes * off) - 1) / sizes  # from 2σ² + qσ⁴, the mean square of an inner product
    variance = float((own * count).sum() / max(count.sum(), 1))
    wanted = 1 + variance * float((sizes * ranks).sum() / ranks.sum())
    length = float(sum(m[0].sum() for m in moments) / ranks.sum())
    if length < 0.7 or (count.sum() >= 10 and abs(length - wanted) > 0.1 + 0.5 * (wanted - 1)):
        raise LograbError(f"columns must be orthonormal, up to noise; here their mean squared length is "
                          f"{length:.3g} where their inner products let expect {wanted:.3g}. They were scaled, or "
                          "belong to the random-walk Laplacian (sklearn's spectral_embedding): "
                          + RANDOM_WALK)  # fmt: skip
    found = float(np.sqrt(variance))
    if sigma is None and variance * float(np.median(sizes)) > DROWNED:
        raise LograbError(f"eigenvectors are orthonormal, and these columns are as far from it as noise of about "
                          f"sigma = {found:.2g} makes them, more than the embedding itself: these are hardly "
                          "spectral embeddings. If there is so much noise on them, say so: sigma=... "
                          "(lograb pack --sigma)")  # fmt: skip
    if sigma is None or not sigma / 2 <= found <= 2 * sigma:
        said = "not announced" if sigma is None else f"announced as {sigma:g}"
        warn(f"the columns are orthonormal up to noise of about sigma = {found:.2g}, which was {said}")


def _is_mixed(column: Floats) -> bool:
    return bool(min(column.max(), -column.min()) > LOOSE * np.abs(column).max())


def _has_odd_diagonal(block: Block) -> bool:
    """A complete spectrum gives L: 1 on the diagonal, 0 on isolated members."""
    if block.values is None or not block.complete:
        return False
    diagonal = block.vectors**2 @ block.values
    return bool((np.minimum(np.abs(diagonal), np.abs(diagonal - 1)) > 1e-3).any())


def _check_degrees(blocks: list[Block]) -> None:
    """Warn where degrees look constant, or not in the proportions of whole numbers."""
    first = [b.vectors[:, 0] for b in blocks if b.zeros == 1 and not _is_mixed(b.vectors[:, 0])]
    unproved = [b for b in blocks if b.values is None or not b.complete]
    flat = [b for b in unproved if _is_flat(b)]
    if flat and (2 * len(flat) >= len(unproved) or max(len(b.vectors) for b in flat) > SMALL):
        warn(f"in {len(flat)} of {len(unproved)} patches the first column is constant, or constants are where "
             "√degree should be: each of their connected parts is a regular graph, or this is the unnormalised "
             f"Laplacian D - A, on which attacks fail. If so, {MAKE_SYMMETRIC}")  # fmt: skip
    odd = sum(not _whole_degrees(column**2) for column in first)
    if 2 * odd > len(first):
        warn(f"the squares of the first column are proportional to degrees, and in {odd} of {len(first)} patches "
             "no scale makes them whole numbers, as if edges had weights; attacks assume none")  # fmt: skip


def _is_flat(block: Block) -> bool:
    """Whether a constant takes the place of √degree: in the first column, or in the span of unconnected patches.

    A connected patch shows √degree as its first column. Otherwise any basis of the space of the eigenvalue 0 may
    be there, which holds a constant for D - A, and for L where all parts are regular.
    """
    first = block.vectors[:, 0]
    if block.zeros < 2 and not _is_mixed(first) and np.abs(first).min() > LOOSE * np.abs(first).max():
        return _is_constant(first)
    columns = block.vectors if block.values is None else block.vectors[:, : block.zeros]
    support = (np.linalg.norm(columns, axis=1) > ZERO).astype(float)
    missed = support - columns @ (columns.T @ support)
    return bool(columns.shape[1] < support.sum() and np.linalg.norm(missed) < LOOSE * np.linalg.norm(support))


def _whole_degrees(squares: Floats) -> bool:
    """Whether some smallest degree makes all of them whole numbers below q; True where too many are possible."""
    ratios = np.unique((squares / max(squares.min(), 1e-300)).round(6))
    most = (len(squares) - 1 + WHOLE) / ratios[-1]
    if most > MAX_SCALE:
        return True
    scaled = np.arange(1, int(most) + 1)[:, None] * ratios
    return bool((np.abs(scaled - scaled.round()).max(axis=1) < WHOLE).any())


def _check_first(blocks: list[Block]) -> None:
    """Without eigenvalues: some combination of the columns is √degree, so nowhere negative."""
    asked = [b for b in blocks if _is_mixed(b.vectors[:, 0]) and not _shows_components(b.vectors)][:TESTED]
    found = [b for b in asked if not _reaches_positive(b.vectors)]
    _refuse(found if 2 * len(found) > len(asked) else [], "no combination of the columns is positive, but the "
            "first eigenvector, √degree, is: it was dropped (sklearn's drop_first, AddLaplacianEigenvectorPE), or "
            "the largest eigenvalues were kept instead of the smallest", f"{KEEP_FIRST}. If a patch has more "
            "components than columns, give its eigenvalues too, or leave it out")  # fmt: skip


def _shows_components(vectors: Floats) -> bool:
    """Whether rows are zero or parallel to others by half: all columns may lie in the space of the eigenvalue 0.

    A patch with more components than columns shows a part of that space only, and √degree need not be in it.
    """
    lengths = np.linalg.norm(vectors, axis=1)
    rows = vectors[lengths > ZERO] / lengths[lengths > ZERO, None]
    steps = np.diff(np.sort(np.abs(rows @ np.random.default_rng(0).standard_normal(rows.shape[1]))))
    alone = np.append(True, steps > ZERO) & np.append(steps > ZERO, True)
    return bool(2 * alone.sum() <= len(vectors))


def _reaches_positive(vectors: Floats) -> bool:
    """Find the combination V c of mean 1 whose smallest entry is largest."""
    from scipy.optimize import linprog  # half a second that few need

    rows = vectors[:: -(-len(vectors) // ROWS)]
    q, r = rows.shape
    at_least = np.column_stack([-rows, np.ones(q)])
    mean = np.append(rows.mean(axis=0), 0.0)[None]
    best = linprog(np.append(np.zeros(r), -1.0), at_least, np.zeros(q), mean, [1.0], bounds=(None, None),
                   options={"time_limit": SECONDS})  # fmt: skip
    impossible = best.status == 2 or (best.status == 0 and best.x[-1] < -LOOSE)
    return not impossible
