from __future__ import annotations

import os
import pickle
import tracemalloc
import warnings
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from lograb.errors import LograbError
from lograb.graphs.public.unpickle import ADMITTED, read_pickle


def write(folder: Path, content: bytes) -> Path:
    path = folder / "data.pickle"
    path.write_bytes(content)
    return path


def refused(folder: Path, content: bytes) -> str:
    with pytest.raises(LograbError) as caught:
        read_pickle(write(folder, content))
    return str(caught.value)


class Evil:
    def __init__(self, call: Any, *args: Any) -> None:
        self.call, self.args = call, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call, self.args


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("value", [
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.arange(6, dtype=">f8").reshape(3, 2).T,
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.zeros((0, 4), dtype=np.float32),
    np.array(7, dtype=np.uint8),
    np.array([True, False]),
    np.array(["a", "bc"]),
])
def test_arrays_come_back_equal(tmp_path: Path, protocol: int, value: np.ndarray[Any, Any]) -> None:
    got = read_pickle(write(tmp_path, pickle.dumps(value, protocol)))
    assert got.shape == value.shape
    assert got.dtype == value.dtype.newbyteorder("=")
    np.testing.assert_array_equal(got, value)
    got[...] = 0  # writable, not a view of the file


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_numpy_scalars_inside_containers(tmp_path: Path, protocol: int) -> None:
    value = {"a": [np.int64(3), np.float32(0.5)], "b": (1, "x", None, {2}, OrderedDict(z=1))}
    assert read_pickle(write(tmp_path, pickle.dumps(value, protocol))) == value


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_matrices_come_back_equal(tmp_path: Path, kind: Any) -> None:
    value = kind(np.array([[0, 1.5, 0], [2, 0, 3]]))
    if ("scipy.sparse._csr", kind.__name__) not in ADMITTED:
        pytest.fail("the table must admit both kinds")
    got = read_pickle(write(tmp_path, pickle.dumps(value, 2)))
    np.testing.assert_array_equal(got.toarray(), value.toarray())


def test_python_2_bytes_are_latin1(tmp_path: Path) -> None:
    # As Python 2 wrote it: the raw bytes of the array as a byte string, names from old modules.
    raw = np.array([1.0, -2.0], dtype="<f4").tobytes()
    content = (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
               b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xff"
               b"J\xff\xff\xff\xffK\x00tb\x89U" + bytes([len(raw)]) + raw + b"tb.")
    assert read_pickle(write(tmp_path, content)).tolist() == [1.0, -2.0]


def test_defaultdict_becomes_a_plain_dict(tmp_path: Path) -> None:
    value: defaultdict[int, list[int]] = defaultdict(list, {0: [1, 2], 1: [0]})
    got = read_pickle(write(tmp_path, pickle.dumps(value, 2)))
    assert type(got) is dict
    assert got == dict(value)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: [1, {"k": (e,)}], lambda e: OrderedDict(a=[e])])
def test_a_call_is_refused_and_not_made(tmp_path: Path, protocol: int, wrap: Any) -> None:
    trace = tmp_path / "executed"
    message = refused(tmp_path, pickle.dumps(wrap(Evil(os.system, f"touch '{trace}'")), protocol))
    assert "system" in message
    assert "data.pickle" in message
    assert not trace.exists()


@pytest.mark.parametrize("call", [eval, exec, getattr, __import__, open, bytearray, np.load, np.fromfile])
def test_other_functions_are_refused(tmp_path: Path, call: Any) -> None:
    assert "refused" in refused(tmp_path, pickle.dumps(Evil(call, "1")))


@pytest.mark.parametrize("name", [b"list.append", b"dict.__class__", b"list.__subclasses__"])
def test_attributes_of_admitted_names_are_refused(tmp_path: Path, name: bytes) -> None:
    text = b"\x8c" + bytes([len(name)]) + name
    message = refused(tmp_path, b"\x80\x04\x8c\x08builtins" + text + b"\x93.")
    assert name.decode() in message


def test_other_classes_are_refused(tmp_path: Path) -> None:
    assert "collections.Counter" in refused(tmp_path, pickle.dumps(Counter("aab")))


def test_bytes_of_a_given_length_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, pickle.dumps(Evil(bytes, 10**12), 2))


def test_array_of_objects_is_refused(tmp_path: Path) -> None:
    content = pickle.dumps(np.array([1, "a", None], dtype=object))
    assert "dtype" in refused(tmp_path, content)


@pytest.mark.parametrize("state", [b"}U\x05_callNs", b"N}U\x05_callNs\x86", b"K\x01"])
@pytest.mark.parametrize("target", [b"c_codecs\nencode\n", b"cnumpy\nndarray\n", b"c__builtin__\nlist\n",
                                    b"ccollections\ndefaultdict\n"])
def test_building_on_an_admitted_name_changes_nothing(tmp_path: Path, target: bytes, state: bytes) -> None:
    def contents() -> dict[Any, Any]:
        return {key: dict(vars(value)) if isinstance(value, type) else value._call
                for key, value in ADMITTED.items()}

    before = contents()
    refused(tmp_path, b"\x80\x02" + target + state + b"b.")
    assert contents() == before
    assert read_pickle(write(tmp_path, pickle.dumps(b"abc", 2))) == b"abc"


def test_a_bare_class_is_refused(tmp_path: Path) -> None:
    assert "class" in refused(tmp_path, pickle.dumps([list]))


def test_array_with_too_few_bytes_is_refused(tmp_path: Path) -> None:
    content = pickle.dumps(np.arange(4, dtype=np.uint8), 2)
    assert content.count(b"K\x04\x85") == 1
    assert "bytes" in refused(tmp_path, content.replace(b"K\x04\x85", b"K\x05\x85"))


def test_sparse_matrix_with_indices_out_of_bounds_is_refused(tmp_path: Path) -> None:
    matrix = sp.csr_matrix(np.eye(3))
    matrix.indices[1] = 99
    assert "cannot be read" in refused(tmp_path, pickle.dumps(matrix))


def test_a_list_that_holds_itself_is_refused(tmp_path: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    refused(tmp_path, pickle.dumps(loop))


def test_repetition_costs_no_time(tmp_path: Path) -> None:
    value: list[Any] = []
    for _ in range(18):  # 2^18 lists if every path were walked, 18 if every list is built once
        value = [value, value]
    got = read_pickle(write(tmp_path, pickle.dumps(value)))
    assert got == value
    while got:
        assert got[0] is got[1]
        got = got[0]


def nested(depth: int) -> bytes:
    """Push a tuple that holds a tuple twice, which holds one twice ...: 2^depth steps for who hashes it."""
    return b")" + b"2\x86" * depth


TEXT = b"X" + (1000).to_bytes(4, "little") + b"a" * 1000 + b"q\x000"
BOMBS = {
    "a key": b"\x80\x02}" + nested(22) + b"K\x01s.",
    "many keys": b"\x80\x02}(" + nested(22) + b"K\x01u.",
    "a dictionary": b"\x80\x02(" + nested(22) + b"K\x01d.",
    "a member": b"\x80\x04\x8f(" + nested(22) + b"\x90.",
    "a frozen member": b"\x80\x04(" + nested(22) + b"\x91.",
    "a set": b"\x80\x02cbuiltins\nset\n]" + nested(22) + b"a\x85R.",
    "a list of pairs": b"\x80\x02cbuiltins\ndict\n]" + nested(22) + b"K\x01\x86a\x85R.",
    "pairs in order": b"\x80\x02ccollections\nOrderedDict\n]" + nested(22) + b"K\x01\x86a\x85R.",
    "a type": b"\x80\x02cnumpy\ndtype\n" + nested(22) + b"\x85R.",
    "a text as a list": b"\x80\x02" + TEXT + b"cbuiltins\nlist\nh\x00\x85R.",
    "a text again and again": b"\x80\x02" + TEXT + b"c_codecs\nencode\nq\x010("
                              + b"h\x01h\x00\x85R" * 2000 + b"l.",
    "a list again and again": b"\x80\x02](" + b"K\x01" * 1000 + b"eq\x000cbuiltins\ntuple\nq\x010("
                              + b"h\x01h\x00\x85R" * 2000 + b"l.",
    "more than there is": b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b".",
    "a place far away": b"\x80\x02Nr\xff\xff\xff\xffX.",
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_time_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "100000")
    path = write(tmp_path, BOMBS[name])
    tracemalloc.start()
    try:
        with pytest.raises(LograbError, match="data.pickle"):
            read_pickle(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_the_variable_raises_what_a_pickle_may_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, BOMBS["a text again and again"])
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "3000000")
    assert read_pickle(path) == [b"a" * 1000] * 2000


def test_an_array_that_is_repeated_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = bytes(1000)
    content = pickle.dumps([np.frombuffer(raw, np.uint8) for _ in range(1000)], 2)
    assert len(read_pickle(write(tmp_path, content))) == 1000
    shared = pickle.dumps([Evil(np._core.numeric._frombuffer, raw, np.dtype(np.uint8), (1000,), "C")
                           for _ in range(2000)], 4)
    monkeypatch.setenv("LOGRAB_MAX_BYTES", "100000")
    assert "far more than it holds" in refused(tmp_path, shared)


CODES = b"".join(value for name, value in vars(pickle).items()
                 if name.isupper() and isinstance(value, bytes) and len(value) == 1)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes, repeat pieces, or put operations in between."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at, other, length = rng.integers(len(data)), rng.integers(len(data)), rng.integers(1, 12)
        kind = rng.integers(4)
        if kind == 0:
            data[at] = rng.integers(256)
        elif kind == 1:
            data[at:at] = data[other : other + length]
        elif kind == 2:
            data[at:at] = rng.choice(np.frombuffer(CODES, np.uint8), size=length).tobytes()
        else:
            del data[at : at + length]
    return bytes(data)


@pytest.mark.parametrize("protocol", range(6))
def test_fuzz_damaged_pickles_give_only_clean_errors(tmp_path: Path, protocol: int) -> None:
    rng = np.random.default_rng(protocol)
    value = {"x": np.arange(5), "m": sp.csr_matrix(np.eye(3)), "s": {1, "a"}, "o": OrderedDict(z=(1, (2, "b"))),
             "d": defaultdict(list, {3: [np.float64(2.5)]})}
    if protocol < 2:
        del value["m"]  # asks for functions of Python 2 that are refused
    content = pickle.dumps(value, protocol)
    read_pickle(write(tmp_path, content))
    refusals = 0
    for _ in range(250):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read_pickle(write(tmp_path, damaged(content, rng)))
            except LograbError:
                refusals += 1
    assert refusals > 100
