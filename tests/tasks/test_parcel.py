"""What an attack is handed: a copy that leads nowhere and cannot be written to."""

import gc
import types

import numpy as np
import pytest
import scipy.sparse as sp

import lograb
from lograb.tasks.parcel import pack, private_copy, unpack
from lograb.types import Graph, Observations, Reconstruction

ARRAYS = ("nodes", "ptr", "ranks", "vectors", "values", "next_values", "centres", "value_ptr", "vector_ptr")
# What all objects of a process share leads everywhere: one cannot be kept apart by it.
SHARED = (type, types.ModuleType, types.FrameType, types.FunctionType, types.BuiltinFunctionType, types.CodeType,
          str, int, float, bool, type(None), np.dtype)  # fmt: skip
STEPS, OBJECTS = 12, 5000


def make_graph(features=None):
    karate = lograb.load_graph("karate")
    names = tuple(f"node {i}" for i in range(34))
    return Graph.from_edges("g", 34, karate.edges, features=features, node_names=names)


@pytest.fixture(params=["none", "dense", "sparse"])
def instance(request):
    dense = np.eye(34, 7) + 0.25
    features = {"none": None, "dense": dense, "sparse": sp.csr_array(np.eye(34, 7))}[request.param]
    return lograb.generate(make_graph(features), d=1, p=0.6, k=4, sigma=0.05)


def claims_nothing(seen):
    return Reconstruction(seen.n_nodes, [], [], [])

NOTHING = ()  # one object for the whole interpreter, as small numbers are


def walk(start):
    """Go breadth-first from an object to what it refers to and what refers to it, a bounded way."""
    known, edge = {id(start): start}, [start]
    for _ in range(STEPS):
        beside = [*gc.get_referents(*edge), *gc.get_referrers(*edge)]
        ours = (known, edge, beside)
        edge = [thing for thing in {id(thing): thing for thing in beside}.values()
                if id(thing) not in known and not isinstance(thing, SHARED) and thing is not NOTHING
                and not any(thing is mine for mine in ours)]  # fmt: skip
        known |= {id(thing): thing for thing in edge}
        if not edge or len(known) > OBJECTS:
            break
    return list(known.values())


def bases(array):
    while array is not None:
        yield array
        array = getattr(array, "base", None)


def test_no_chain_of_references_leads_from_an_attack_s_observations_to_the_instance(instance):
    truth, tables = instance.truth, dict(instance.tables)
    met = []

    def attack(seen, rng):
        met.extend(walk(seen))
        return claims_nothing(seen)

    lograb.attack(instance, attack, features=instance.features is not None)
    own = {id(thing) for thing in (instance, truth, instance.observations, *tables.values(), instance.__dict__)}
    assert 10 < len(met) < OBJECTS
    assert not [thing for thing in met if id(thing) in own or isinstance(thing, lograb.Instance | Graph)]
    assert not [thing for thing in met if isinstance(thing, np.ndarray) and np.array_equal(thing, truth.edges)]


def test_the_walk_would_find_the_instance_from_its_own_observations():
    instance = lograb.generate(make_graph(), d=1, p=0.6, k=4)
    assert any(thing is instance for thing in walk(instance.observations))


def test_no_array_of_an_attack_lies_in_the_memory_of_the_instance(instance):
    seen_before = instance.observe(features=instance.features is not None)

    def attack(seen, rng):
        for name in ARRAYS:
            for part in bases(getattr(seen, name)):
                if isinstance(part, np.ndarray):
                    assert not np.shares_memory(part, getattr(seen_before, name))
                    assert not any(np.shares_memory(part, column) for column in instance.tables.values())
        return claims_nothing(seen)

    lograb.attack(instance, attack, features=instance.features is not None)


def test_an_attack_cannot_write_into_its_observations(instance):
    def attack(seen, rng):
        arrays = [getattr(seen, name) for name in ARRAYS]
        if sp.issparse(seen.features):
            arrays += [seen.features.data, seen.features.indices, seen.features.indptr]
        elif seen.features is not None:
            arrays.append(seen.features)
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
            for part in bases(array):
                if isinstance(part, np.ndarray) and array is not seen.value_ptr and array is not seen.vector_ptr:
                    with pytest.raises(ValueError, match="WRITEABLE"):
                        part.setflags(write=True)
        return claims_nothing(seen)

    lograb.attack(instance, attack, features=instance.features is not None)


def test_what_an_attack_does_to_its_copy_the_next_one_does_not_see():
    instance = lograb.generate(make_graph(), d=1, p=0.6, k=4)
    before = instance.observations.vectors.copy()
    found = []

    def spoil(seen, rng):
        object.__setattr__(seen, "vectors", np.zeros_like(seen.vectors))
        seen.protocol.__dict__["k"] = 1
        return claims_nothing(seen)

    def look(seen, rng):
        found.append((seen.vectors.copy(), seen.protocol.k))
        return claims_nothing(seen)

    lograb.compare(instance, [spoil, look])
    assert np.array_equal(found[0][0], before)
    assert found[0][1] == 4
    assert np.array_equal(instance.observations.vectors, before)


def test_observations_given_directly_are_copied_too():
    seen = lograb.generate("karate", k=4).observations
    handed = []
    lograb.attack(seen, lambda copy, rng: handed.append(copy) or claims_nothing(copy))
    assert handed[0] is not seen
    assert not np.shares_memory(handed[0].vectors, seen.vectors)


def test_the_copy_is_equal(instance):
    seen = instance.observe(features=instance.features is not None)
    for copy in (private_copy(seen), unpack(pack(private_copy(seen)))):
        assert isinstance(copy, Observations)
        for name in ARRAYS:
            mine, theirs = getattr(copy, name), getattr(seen, name)
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs, equal_nan=True)
        for name in ("n_nodes", "protocol", "node_names", "patch_names"):
            assert getattr(copy, name) == getattr(seen, name)
        if seen.features is None:
            assert copy.features is None
        else:
            assert sp.issparse(copy.features) == sp.issparse(seen.features)
            assert abs(copy.features - seen.features).sum() == 0


def test_learned_attacks_work_on_features_that_cannot_be_written(instance):
    pytest.importorskip("torch_geometric")
    if instance.features is not None:
        quick = lograb.attacks.find_attack("gae")(epochs=2)
        assert lograb.attack(instance, quick, features=True).n_nodes == 34


def test_compare_does_not_tell_an_attack_the_seed_of_the_instance():
    secret, met = 2**100 + 1, []

    def attack(seen, rng):
        met.append(rng.bit_generator.seed_seq.entropy)
        return claims_nothing(seen)

    lograb.compare("karate", [attack], seeds=2, seed=secret)
    assert met == [0, 1]
