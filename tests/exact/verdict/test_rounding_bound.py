"""The measured bound at the size of real vocabularies: a right float32 chain, and one with a bias of 1e-4."""

import numpy as np
import pytest

from exact import certify
from rheo_core import TreeMethod, TreeShape, method
from tests.pairs import alike

pytestmark = pytest.mark.exact
SIZES = [8, 2_000, pytest.param(50_000, marks=pytest.mark.slow)]


def rows(size):
    """A float32 target [V] and a draft over its best tokens."""
    rng = np.random.default_rng(size)
    p = np.exp(2 * rng.standard_normal(size).astype(np.float32))
    p = (p / p.sum()).astype(np.float32)
    q, top = np.zeros_like(p), np.argsort(-p)[: min(size, 32)]
    q[top] = p[top] * np.exp(0.7 * rng.standard_normal(len(top))).astype(np.float32)
    return p, (q / q.sum()).astype(np.float32)


def chain(bias):
    @method
    def cycle(target, draft, prefix, shape, chooser):
        p, q = target(prefix), draft(prefix)
        token = chooser.index(q)
        if chooser.accept(min(1, p[token] / q[token]) * (1 - bias)):
            return [token, chooser.index(target((*prefix, token)))]
        return [chooser.index(np.maximum(p - q, 0))]

    return cycle


def rule(bias):
    def verify(p, tail, candidates, sampled, lead, chooser, at):
        if sampled == -1:
            return chooser.index(p), -1
        token = candidates[sampled]
        if chooser.accept(min(1, p[token] / tail[token]) * (1 - bias)):
            return token, sampled
        return chooser.index(np.maximum(p - tail, 0)), -1

    return TreeMethod("mine", None, 0, verify=verify)


@pytest.mark.parametrize("kind", [chain, rule])
@pytest.mark.parametrize("size", SIZES)
def test_a_right_chain_is_up_to_rounding_and_a_bias_of_1e_4_is_lossy(size, kind):
    p, q = map(alike, rows(size))
    right = certify(kind(0), p, q, TreeShape(1, 1, 1), every_target=False)
    assert right.verdict == "lossless up to rounding"
    assert right.rounding_bound is not None
    assert right.rounding_most is not None
    assert 0 < right.total_variation <= right.rounding_bound < right.rounding_most / 10
    assert "in expectation" in right.note
    biased = certify(kind(1e-4), p, q, TreeShape(1, 1, 1), every_target=False)
    assert biased.verdict == "lossy"
