"""Exactness at the sizes of real models: CPU seconds of one core and peak memory, each in a process of its own.

A limit is the goal itself. Rows are made outside of the measured part, as a recording would have given them.
"""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.benchmark

FRAME = """
import json, resource, sys, time
{prepare}
start = time.process_time()
{program}
seconds = time.process_time() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, result]))
"""


def measured(prepare, program):
    """(CPU seconds, peak MB of the whole process, `result`) of a program in a fresh interpreter."""
    code = FRAME.format(prepare=prepare, program=program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seconds, memory, result = json.loads(done.stdout)
    print(f"\n{seconds:.2f} CPU s, {memory:.0f} MB: {result}")
    return seconds, memory, result


WIDE_ROWS = """
import numpy as np
from exact.acceptance.one_pool import OneLayerTree, WholeRows
from exact.methods.rows_file import Rows
from rheo_core import ModelPair, TreeShape, methods
rng = np.random.default_rng(0)
target = 3 * rng.standard_normal(128_000)
logits = {{"target_logits": target.tolist(), "draft_logits": (target + rng.standard_normal(128_000)).tolist()}}
rows = Rows("wide", {{None: logits}}, support={support})
"""
ONE_POOL = """
pair = ModelPair(rows.target, rows.draft)
pool = WholeRows(pair.p(()), pair.q(())).pool(1)
rheo = pool.layer("algorithm_1", 10, pool.tail)
rates = [rheo.acceptance, pool.rate("rrsw", 10), pool.top_k(10), pool.optimum(10)]
result = [rheo.emitted.wrong is None, [float(rate) for rate in rates]]
"""


@pytest.mark.parametrize("support", [128, None])
def test_one_pool_over_a_real_vocabulary(support):
    """2 s and 300 MB: from float logits at V = 128,000 to the emitted law, A_Rheo, A_RRSw, p(Top_n) and A*."""
    seconds, memory, (lossless, rates) = measured(WIDE_ROWS.format(support=support), ONE_POOL)
    rheo, rrsw, top, best = rates
    assert lossless
    assert 0 < max(rheo, rrsw, top) <= best < 1
    assert seconds < 2
    assert memory < 300
