"""Read pickles that publishers released as data, and nothing but data.

A pickle is a program: it may name any importable class or function and call it. Here every name
is looked up in a short table instead, and the table leads to functions of this file rather than
to the named ones: arrays, dtypes and sparse matrices are kept as plain state while the pickle
runs and built afterwards, with their bounds checked. Whatever is not in the table is refused.

It may also be a bomb. Tuples that hold each other twice take forever to hash or print, so keys and members of sets
are numbers and strings; and what the program makes of pieces that it repeats is counted (`lograb.limits`). The
unpickler is the one that the standard library has in Python, because the other cannot be watched.
"""

from __future__ import annotations

import math
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NoReturn

import numpy as np
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.limits import REMEDY, max_bytes

Names = Mapping[tuple[str, str], Any]
CONTAINERS = (list, tuple, dict, set, frozenset)


class Callee:
    """A function that a pickle may call but, unlike a bare function, cannot alter."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *args: Any) -> Any:
        """Call the function."""
        return self._call(*args)

    def __setstate__(self, state: object) -> NoReturn:
        raise LograbError("a pickle must not alter functions")


def read_pickle(path: Path, extra: Names | None = None) -> Any:
    """Read a pickle of arrays, sparse CSR matrices and built-in containers.

    Parameters
    ----------
    path : Path
        A pickle of any protocol, from Python 2 or 3. All that it holds will be in memory.
    extra : mapping, optional
        Further (module, name) pairs to admit, and what to use in their place.

    Returns
    -------
    object
        Containers of numbers, strings, numpy arrays and scipy csr_arrays; a defaultdict arrives
        as a dict.
    """
    try:
        with path.open("rb") as file:
            return load_pickle(file, extra)
    except LograbError as error:
        raise LograbError(f"{path.name}: {error}") from error.__cause__


def load_pickle(file: BinaryIO, extra: Names | None = None) -> Any:
    """Do what `read_pickle` does, for an open file."""
    try:
        return _built(_Reader(file, {**ADMITTED, **(extra or {})}).load(), {})
    except LograbError:
        raise
    except Exception as error:  # a broken pickle can raise anything
        raise LograbError(f"the pickle cannot be read ({type(error).__name__}: {str(error)[:200]}); "
                          "get the file again from its publisher") from error


class _Reader(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Any]]
    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]

    def __init__(self, file: BinaryIO, names: Names) -> None:
        super().__init__(file, encoding="latin1")
        self._names = names
        self.left = max(max_bytes(), 4 * file.seek(0, 2))
        file.seek(0)

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._names:
            raise LograbError(f"a data pickle may hold only arrays and containers, this one asks for "
                              f"'{module}.{name}', which is refused; do not use the file")
        return self._names[module, name]

    def charge(self) -> None:
        """Count what stands on top of the stack and is about to be made into something else."""
        top = self.stack[-1]
        for piece in top.values() if isinstance(top, dict) else top if isinstance(top, tuple | list) else ():
            if isinstance(piece, str | bytes | bytearray):
                self.left -= len(piece)
            elif isinstance(piece, CONTAINERS):
                self.left -= 8 * len(piece)
        if self.left < 0:
            raise LograbError(f"the pickle makes far more than it holds; {REMEDY}")

    def read_bytearray(self) -> None:
        """Read bytes before their number is believed."""
        self.append(bytearray(self.read(int.from_bytes(self.read(8), "little"))))


def _guarded(code: bytes, check: Callable[[_Reader], None]) -> None:
    """Let a check precede what the unpickler does for an operation."""
    usual: Any = pickle._Unpickler.dispatch[code[0]]

    def operate(reader: _Reader) -> None:
        check(reader)
        usual(reader)

    _Reader.dispatch[code[0]] = operate


_Reader.dispatch = {**pickle._Unpickler.dispatch, pickle.BYTEARRAY8[0]: _Reader.read_bytearray}
for _code in (pickle.INST, pickle.OBJ, pickle.NEWOBJ_EX, pickle.EXT1, pickle.EXT2, pickle.EXT4):
    del _Reader.dispatch[_code[0]]  # data has no use for them
for _code in (pickle.REDUCE, pickle.NEWOBJ, pickle.BUILD):
    _guarded(_code, _Reader.charge)
_guarded(pickle.SETITEM, lambda reader: _check_keys(reader.stack[-2:-1]))
for _code in (pickle.SETITEMS, pickle.DICT):
    _guarded(_code, lambda reader: _check_keys(reader.stack[::2]))
for _code in (pickle.ADDITEMS, pickle.FROZENSET):
    _guarded(_code, lambda reader: _check_keys(reader.stack))


def _check_keys(keys: Iterable[Any]) -> None:
    for key in keys:
        if not isinstance(key, str | bytes | int | float | np.generic | None):
            raise LograbError("keys of a dictionary and members of a set in a pickle must be numbers or strings, "
                              f"got {type(key).__name__}")


def _sequence(kind: Callable[[Any], Any], items: Any = ()) -> Any:
    if not isinstance(items, CONTAINERS):
        raise LograbError(f"a list in a pickle must be made of a container, got {type(items).__name__}")
    return kind(items)


def _set(kind: Callable[[Any], Any], items: Any = ()) -> Any:
    _check_keys(items)
    return kind(items)


def _dict(kind: Callable[[Any], Any], items: Any = ()) -> Any:
    pairs = list(items.items() if isinstance(items, dict) else items)
    _check_keys(pair[0] for pair in pairs)
    return kind(pairs)


class _Type:
    """What a pickle says of a dtype: only plain numbers and strings become one."""

    def __init__(self, code: object, *_: object) -> None:
        self.code = _text(code)
        if len(self.code) > 20:
            raise LograbError(f"the type of an array in a pickle must be a short word, got '{self.code[:40]}...'")
        self.order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = _text(state[1])

    def build(self) -> np.dtype[Any]:
        dtype = np.dtype(self.code)
        if dtype.kind not in "biufcSU" or dtype.fields or dtype.subdtype:
            raise LograbError(f"arrays in a pickle must hold numbers or strings, got dtype '{self.code}'")
        if self.order == ">":
            return dtype.newbyteorder(">")
        return dtype.newbyteorder("<") if self.order == "<" else dtype


class _Array:
    """What a pickle says of an array, until it is built."""

    def __init__(self) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def build(self) -> np.ndarray[Any, Any]:
        shape, dtype, fortran, raw = self.state[-4:]  # a version number comes first, mostly
        return _array(raw, dtype, shape, "F" if fortran else "C")


class _Sparse:
    """What a pickle says of a csr_matrix, until it is built."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.state = {_text(key): value for key, value in state.items()}

    def build(self, seen: dict[int, Any]) -> Any:
        data, indices, indptr = (_built(self.state[key], seen) for key in ("data", "indices", "indptr"))
        shape = self.state["_shape"] if "_shape" in self.state else self.state["shape"]
        matrix = sp.csr_array((data, indices, indptr), shape=tuple(int(n) for n in shape))
        matrix.check_format(full_check=True)
        return matrix


def _built(value: Any, seen: dict[int, Any]) -> Any:
    """Replace kept states by arrays, in containers too; each object once, so that repetition is cheap."""
    if id(value) in seen:
        return seen[id(value)]
    built: Any
    if isinstance(value, _Type | _Array):
        built = value.build()
    elif isinstance(value, _Sparse):
        built = value.build(seen)
    elif isinstance(value, list | tuple | set | frozenset):
        built = type(value)([_built(item, seen) for item in value])
    elif isinstance(value, dict):
        built = type(value)((_built(key, seen), _built(item, seen)) for key, item in value.items())
    elif isinstance(value, type | Callee):
        raise LograbError("a data pickle may hold only arrays and containers, this one holds a class")
    else:
        return value
    seen[id(value)] = built
    return built


def _array(raw: Any, dtype: Any, shape: Any, order: str = "C") -> np.ndarray[Any, Any]:
    if not isinstance(dtype, _Type):
        raise LograbError("an array in a pickle needs a dtype")
    kind, sides = dtype.build(), tuple(int(n) for n in shape)
    content = _bytes(raw)
    if len(sides) > 32 or min(sides, default=0) < 0 or math.prod(sides) * kind.itemsize != len(content):
        raise LograbError(f"an array of shape {sides[:32]} and type {kind} in a pickle has {len(content)} bytes")
    flat = np.frombuffer(content, dtype=kind)
    return flat.reshape(sides, order="F" if order == "F" else "C").astype(kind.newbyteorder("="), order="C")


def _scalar(dtype: Any, raw: Any) -> Any:
    return _array(raw, dtype, ())[()]


def _encode(text: str, encoding: str = "latin1") -> bytes:
    # Python 3 writes bytes this way into pickles that Python 2 must be able to read.
    if encoding not in ("latin1", "latin-1"):
        raise LograbError(f"bytes in a pickle must be encoded as latin1, got '{encoding}'")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    return b""  # with an argument it could be made to fill the memory; pickles call it without


def _bytes(raw: Any) -> bytes:
    return raw.encode("latin1") if isinstance(raw, str) else bytes(memoryview(raw))


def _text(value: object) -> str:
    if not isinstance(value, str | bytes):
        raise LograbError(f"a word is missing in a pickle, got {type(value).__name__}")
    return value.decode("latin1") if isinstance(value, bytes) else value


def _admit() -> dict[tuple[str, str], Any]:
    names: dict[tuple[str, str], Any] = {
        ("numpy", "dtype"): _Type,
        ("numpy", "ndarray"): _Array,
        ("_codecs", "encode"): Callee(_encode),
        ("collections", "OrderedDict"): Callee(partial(_dict, OrderedDict)),
        ("collections", "defaultdict"): Callee(lambda *_: {}),
    }
    for core in ("numpy.core", "numpy._core"):
        names[f"{core}.multiarray", "_reconstruct"] = Callee(lambda *_: _Array())
        names[f"{core}.multiarray", "scalar"] = Callee(_scalar)
        names[f"{core}.numeric", "_frombuffer"] = Callee(_array)
    for module in ("scipy.sparse.csr", "scipy.sparse._csr"):
        names[module, "csr_matrix"] = _Sparse
        names[module, "csr_array"] = _Sparse
    for module in ("builtins", "__builtin__"):
        names[module, "bytes"] = Callee(_no_bytes)
        names |= {(module, kind.__name__): Callee(kind) for kind in (int, float)}
        names |= {(module, kind.__name__): Callee(partial(_sequence, kind)) for kind in (list, tuple)}
        names |= {(module, kind.__name__): Callee(partial(_set, kind)) for kind in (set, frozenset)}
        names[module, "dict"] = Callee(partial(_dict, dict))
    return names


ADMITTED: Names = _admit()
"""The names a pickle may use, and what stands in for them."""
