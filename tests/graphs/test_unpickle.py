from __future__ import annotations

import os
import pickle
from collections import Counter, OrderedDict, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.binary(max_size=60), st.integers(0, 10**6))
def test_damaged_pickles_give_only_clean_errors(
        tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int) -> None:
    content = bytearray(pickle.dumps({"x": np.arange(5), "m": sp.csr_matrix(np.eye(3))}, 2))
    start = at % len(content)
    content[start : start + len(noise)] = noise
    path = write(tmp_path_factory.getbasetemp(), bytes(content))
    with suppress(LograbError):
        read_pickle(path)
