"""The numbers that simulations draw from: uniform, unrelated at neighbouring addresses, always the same."""

import numpy as np
import pytest
from scipy import stats

from montecarlo.keyed_random import (
    COIN,
    EMIT,
    TAIL,
    AddressChooser,
    Uniforms,
    child_codes,
    code_of,
    number_at,
    root_codes,
)
from rheo_core import InvalidInput, SamplingChooser


def numbers(seed=0, runs=400):
    """u [runs, kinds, paths, i] at many neighbouring addresses."""
    uniforms = Uniforms(seed)
    streams = uniforms.streams(np.arange(runs), 0)[:, None, None]
    paths = [(), *((a,) for a in range(6)), *((a, b) for a in range(4) for b in range(4))]
    codes = np.array([code_of(path) for path in paths], dtype=np.uint64)[:, None]
    return np.stack([uniforms.at(streams, kind, codes, np.arange(5)) for kind in (TAIL, COIN, EMIT)], axis=1)


def test_numbers_are_uniform_and_those_of_neighbouring_addresses_are_unrelated():
    """Chi-square on 64 cells and on 16 x 16 cells of neighbours along every axis; 10 tests, each at 1e-7."""
    u = numbers()
    assert (u >= 0).all()
    assert (u < 1).all()
    cells = np.bincount((u.reshape(-1) * 64).astype(int), minlength=64)
    assert stats.chisquare(cells).pvalue > 1e-7
    for axis in range(4):
        first = np.moveaxis(u, axis, 0)[:-1].reshape(-1)
        second = np.moveaxis(u, axis, 0)[1:].reshape(-1)
        pairs = np.bincount((first * 16).astype(int) * 16 + (second * 16).astype(int), minlength=256)
        assert stats.chisquare(pairs).pvalue > 1e-7
    other = numbers(seed=1)
    pairs = np.bincount(((u * 16).astype(int) * 16 + (other * 16).astype(int)).reshape(-1), minlength=256)
    assert stats.chisquare(pairs).pvalue > 1e-7


def test_a_lattice_is_seen():
    """Planted fault: numbers that step by a constant from run to run fail the same test of neighbours."""
    u = (np.arange(200_000) * 0.6180339887) % 1
    pairs = np.bincount((u[:-1] * 16).astype(int) * 16 + (u[1:] * 16).astype(int), minlength=256)
    assert stats.chisquare(pairs).pvalue < 1e-7


def test_all_addresses_have_numbers_of_their_own():
    u = numbers(runs=100)
    assert len(np.unique(u)) == u.size


def test_cycles_of_one_run_differ():
    uniforms = Uniforms(3)
    first, second = (uniforms.streams(np.arange(5), cycle) for cycle in (0, 1))
    assert not set(first.tolist()) & set(second.tolist())


def test_the_chooser_reads_the_same_numbers():
    uniforms = Uniforms(5)
    chooser = AddressChooser(uniforms, run=7, cycle=2)
    codes = child_codes(child_codes(root_codes(1), 3), 0)
    expected = uniforms.at(uniforms.streams(7, 3), COIN, codes, 4)[0]
    assert chooser.uniform(("coin", 1, (3, 0), 4)) == expected
    assert number_at(uniforms.key, 7, ("coin", 3, (3, 0), 4)) == expected
    assert chooser.accept(np.nextafter(expected, 1), ("coin", 1, (3, 0), 4))
    assert not chooser.accept(expected, ("coin", 1, (3, 0), 4))


def test_calls_without_an_address_and_with_a_foreign_one_are_reproducible():
    draws = [[AddressChooser(Uniforms(1), run).uniform(at) for at in (None, "mine", ("own", 1))] for run in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    chooser = AddressChooser(Uniforms(1), 0)
    assert chooser.uniform(None) != chooser.uniform(None)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_coin_of_probability_one_is_accepted_at_the_greatest_number(dtype):
    """Compared in the probability's own narrow type, 1 - 2^-53 would round up to 1 and reject."""

    class Greatest:
        def random(self):
            return 1 - 2.0**-53

    chooser = SamplingChooser(Greatest())  # type: ignore[arg-type]
    assert chooser.accept(dtype(1))
    assert not chooser.accept(np.nextafter(dtype(1), dtype(0)))


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InvalidInput, match="seed: got"):
        Uniforms(seed)
