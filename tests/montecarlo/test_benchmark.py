"""Speed and memory of the simulator against stated limits; run with `-m benchmark -s`."""

import time
import tracemalloc

import numpy as np
import pytest

from montecarlo.checks import Suite
from montecarlo.keyed_random import Uniforms
from montecarlo.pairs import Dials, synthetic
from montecarlo.simulation import simulate
from montecarlo.simulator import Simulator
from rheo_core import SamplingChooser, TreeShape, methods, speculate

FULL = TreeShape(10, 8, 59)
LEAST_RATIO = 10


@pytest.mark.benchmark
@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw"])
def test_ten_times_the_cycles_per_second_of_looping_the_reference(name):
    """V = 1,000, support 128, K = 10, D = 8, R = 59; rows precomputed for both, one process, taken in turns."""
    pair = synthetic(Dials(vocabulary=1000, support=128))
    simulator = Simulator(name, pair, FULL, Uniforms(0))
    batch = simulator.batch()
    prefixes = np.zeros((batch, 0), dtype=np.int64)
    simulator.cycles(prefixes, np.arange(batch))
    chooser = SamplingChooser(np.random.default_rng(0))
    speculate(pair.target_at, pair.draft_at, (), name, FULL, chooser)
    ratios = []
    for turn in range(3):
        start = time.perf_counter()
        simulator.cycles(prefixes, np.arange(batch) + turn * batch)
        fast = batch / (time.perf_counter() - start)
        start = time.perf_counter()
        for _ in range(20):
            speculate(pair.target_at, pair.draft_at, (), name, FULL, chooser)
        slow = 20 / (time.perf_counter() - start)
        ratios.append(fast / slow)
        print(f"{name}: {fast:.0f} cycles/s vectorised, {slow:.1f} looping rheo_core, ratio {fast / slow:.0f}")
    assert min(ratios) >= LEAST_RATIO


@pytest.mark.benchmark
@pytest.mark.parametrize("vocabulary", [1000, 32_000])
def test_memory_stays_bounded_whatever_the_number_of_cycles(vocabulary):
    pair = synthetic(Dials(vocabulary=vocabulary, support=128, states=8, overlap=0.8))
    suite = Suite(methods["rheo"], pair, FULL, Uniforms(0))
    peaks = []
    for batches in (1, 4):
        tracemalloc.start()
        start = time.perf_counter()
        outcome = simulate(suite, batches * suite.batch())
        took = time.perf_counter() - start
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()
        speed = f"{outcome.cycles / took:.0f} a second with all checks"
        print(f"V = {vocabulary}: {outcome.cycles} cycles, {speed}, peak {peaks[-1]:.0f} MiB")
    assert peaks[1] < 1.2 * peaks[0] + 8
    assert peaks[1] < 512
