"""The same answers with and without gmpy2: each program is run twice, once in a process where gmpy2 cannot be had."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.exact

BLOCKED = "import sys; sys.modules['gmpy2'] = None\n"

CERTIFY = """
from fractions import Fraction as F
import numpy as np
from exact import certify, law
from exact.enumeration.rationals import Fast
from rheo_core import TreeShape, speculate
p, q = [F(1, 2), F(1, 5), F(3, 10)], [F(1, 2), F(3, 10), F(1, 5)]
for name in ("rheo", "rheo-rrsw", "top-k", "rheo-adhoc", "rheo-raw", "rheo-half"):
    single = np.float32([0.5, 0.3, 0.2])
    for rows in ((p, q), (np.array(p, float), np.array(q, float)), (single, single[::-1])):
        target, draft = (lambda prefix, row=row: row if len(prefix) % 2 else row[::-1] for row in rows)
        found = certify(name, target, draft, TreeShape(2, 2, 3), second=False)
        print(name, found.verdict, found.total_variation, found.classes, found.acceptance_by_depth)
        print(found.counterexample)
        print(sorted(found.law().items()))
        replayed = law(lambda chooser: speculate(target, draft, (), name, TreeShape(2, 1, 2), chooser).tokens)
        print(sorted(replayed.items()), {type(mass).__name__ for mass in replayed.values()})
print(Fast.__name__, file=__import__("sys").stderr)
"""


def output(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.strip()


def test_certify_and_law_give_the_same_with_and_without():
    pytest.importorskip("gmpy2", reason="gmpy2 is not installed (extra `fast`): nothing to compare with")
    with_gmpy2, fast = output(CERTIFY)
    without, plain = output(BLOCKED + CERTIFY)
    assert (fast, plain) != (plain, fast)
    assert fast == "mpq"
    assert plain != "mpq"
    assert with_gmpy2 == without
    assert "mpq" not in with_gmpy2
    assert with_gmpy2.count("lossless") > 10
