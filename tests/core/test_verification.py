"""Verification rules beside laws written in closed form: every order, every set of candidates, every arithmetic."""

import warnings
from fractions import Fraction as F
from functools import partial
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import law
from rheo_core import InvalidInput, checks, laws
from rheo_core.verification import algorithm_1, ratio, rrsw, vanilla
from tests.pairs import rational, rows

AT = (0, ())
LARGEST = 1 - 2**-53


class Coins:
    """A chooser with a fixed uniform number for every coin; draws take the heaviest position."""

    def __init__(self, u):
        self.u = u
        self.addresses = []

    def accept(self, probability, at=None):
        assert 0 <= probability <= 1
        self.addresses.append(at)
        return bool(self.u < probability)

    def index(self, weights, at=None):
        self.addresses.append(at)
        return int(np.argmax(weights))


def row_of(values):
    return checks.check_law(values, "row")


def verdicts(rule, p, tail, candidates, sampled, lead=1):
    """The exact law of (token, child)."""
    return law(lambda chooser: rule(p, tail, candidates, sampled, lead, chooser, AT))


def accumulated(pairs):
    found: dict[tuple[int, int], F] = {}
    for key, mass in pairs:
        if mass:
            found[key] = found.get(key, F(0)) + mass
    return found


def point_masses(r, candidates, mass, skip=()):
    """Sequential rejection under r: candidate i takes r(its token), the rest of r leaves the tree."""
    kept = [i for i in range(len(candidates)) if i not in skip]
    inside = [((candidates[i], i), mass * r[candidates[i]]) for i in kept]
    outside = set(range(len(r))) - {candidates[i] for i in kept}
    return inside + [((token, -1), mass * r[token]) for token in outside]


def algorithm_1_oracle(p, tail, candidates, sampled):
    if sampled == -1:
        return accumulated(point_masses(p, candidates, F(1)))
    y = candidates[sampled]
    accepted = min(F(1), p[y] / tail[y])
    excess = [max(F(0), x - q) for x, q in zip(p, tail, strict=True)]
    rest = [] if accepted == 1 else point_masses([x / sum(excess) for x in excess], candidates, 1 - accepted, {sampled})
    return accumulated([((y, sampled), accepted), *rest])


def rrsw_oracle(p, tail, candidates, sampled):
    """Appendix D.2: leads under p; p~ is p without the leads that are present; Y; then what is left of p~ after q~."""
    if sampled == -1:
        return accumulated(point_masses(p, candidates, F(1)))
    y, leads = candidates[sampled], candidates[:sampled]
    found = [((token, i), p[token]) for i, token in enumerate(leads)]
    reached = 1 - sum(p[token] for token in leads)
    if not reached:
        return accumulated(found)
    after = [F(0) if token in leads else p[token] / reached for token in range(len(p))]
    accepted = min(F(1), after[y] / tail[y])
    found.append(((y, sampled), reached * accepted))
    if accepted < 1:
        excess = [max(F(0), x - q) for x, q in zip(after, tail, strict=True)]
        found += point_masses(
            [x / sum(excess) for x in excess], candidates, reached * (1 - accepted), set(range(sampled + 1))
        )
    return accumulated(found)


@st.composite
def nodes(draw):
    """p, q~, candidates in slot order and the index of the sampled one, for some lead and width."""
    size = draw(st.integers(1, 5))
    p, q = row_of(draw(rows(size))), row_of(draw(rows(size)))
    order = sorted(range(size), key=lambda token: (-q[token], token))
    m = draw(st.integers(0, size))
    tail = laws.without(q, order[:m])
    leads = order[: draw(st.integers(0, m))]
    if tail is None or draw(st.booleans()):
        fills = draw(st.permutations(order[len(leads) :]))[: draw(st.integers(0, size))]
        return p, None, [*leads, *fills], -1
    y = draw(st.sampled_from([token for token in range(size) if tail[token]]))
    others = [token for token in order if token not in leads and token != y and token not in order[:m]]
    return p, tail, [*leads, y, *others[: draw(st.integers(0, size))]], len(leads)


@given(nodes())
@settings(max_examples=120)
def test_rules_against_their_closed_forms(node):
    p, tail, candidates, sampled = node
    assert verdicts(algorithm_1, p, tail, candidates, sampled) == algorithm_1_oracle(p, tail, candidates, sampled)
    assert verdicts(rrsw, p, tail, candidates, sampled) == rrsw_oracle(p, tail, candidates, sampled)
    assert verdicts(vanilla, p, tail, candidates, sampled) == accumulated(point_masses(p, candidates, F(1)))


def in_order(places, indices):
    return [indices[place] for place in places]


@given(nodes())
@settings(max_examples=80)
def test_every_order_of_the_rest_gives_one_law(node):
    p, tail, candidates, sampled = node
    for rule in (algorithm_1, vanilla):
        expected = verdicts(rule, p, tail, candidates, sampled)
        count = len(candidates) - (rule is algorithm_1 and sampled != -1)
        for places in permutations(range(count)):
            ordered = partial(rule, order=partial(in_order, places))
            assert verdicts(ordered, p, tail, candidates, sampled) == expected


@given(st.integers(1, 4).flatmap(lambda size: st.tuples(rows(size), rows(size))), st.integers(0, 3))
@settings(max_examples=60)
def test_equation_6_for_every_set_of_candidates(pair, m):
    """Over Y ~ q~ every rule emits p, and accepts a candidate that is always there with its own p (Eq. (6), (V2))."""
    p, q = map(row_of, pair)
    order = sorted(range(len(q)), key=lambda token: (-q[token], token))
    tail = laws.without(q, order[:m])
    if tail is None:
        return
    for count in range(len(q)):
        for others in combinations(order, count):
            emitted, accepted = [F(0)] * len(p), [F(0)] * len(p)
            for y in np.flatnonzero(tail).tolist():
                candidates = [y, *(token for token in others if token != y)]
                for (token, child), mass in verdicts(algorithm_1, p, tail, candidates, 0).items():
                    emitted[token] += tail[y] * mass
                    accepted[token] += tail[y] * mass * (child != -1)
            assert emitted == p.tolist()
            assert all(accepted[token] == p[token] for token in others)


def test_algorithm_1_reads_like_the_paper_on_table_1():
    p, tail = row_of(rational(5, 2, 3)), row_of([F(0), F(3, 5), F(2, 5)])
    assert verdicts(algorithm_1, p, tail, [0, 1], 1) == {(1, 1): F(1, 3), (0, 0): F(2, 3)}
    assert verdicts(algorithm_1, p, tail, [0, 2], 1) == {(2, 1): F(3, 4), (0, 0): F(1, 4)}


ALL_FLOATS = pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])


@ALL_FLOATS
@pytest.mark.parametrize("rule", [algorithm_1, rrsw, vanilla])
def test_no_zero_over_zero_where_candidates_cover_the_residual(rule, dtype):
    """D4: p = q, and the candidates hold everything; no coin can leave an empty law to draw from."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in ([0.5, 0.25, 0.25], [1, 0, 0], [0, 0.5, 0.5]):
            p = row_of(np.array(values, dtype))
            tails = [(laws.without(p, [0]), [0, 1, 2], 1), (p, [1, 0, 2] if values[0] == 0 else [0, 1, 2], 0)]
            for tail, candidates, sampled in tails:
                if tail is None or not tail[candidates[sampled]]:
                    continue
                for u in (0.0, 0.3, 0.6, LARGEST):
                    token, child = rule(p, tail, candidates, sampled, 1, Coins(u), AT)
                    assert 0 <= token < 3
                    assert child != -1 or rule is not vanilla


@ALL_FLOATS
def test_an_all_zero_residual_of_unequal_floats_tosses_accept_1(dtype):
    """p <= q~ everywhere in floats though p != q~: the residual has no mass, and the ratio would be below 1."""
    eps = float(np.finfo(dtype).eps)
    p = row_of(np.array([0.5 - eps, 0.5], dtype))
    q = row_of(np.array([0.5, 0.5], dtype))
    assert laws.residual(p, q) is None
    assert p[0] / q[0] < 1
    for rule in (algorithm_1, rrsw):
        assert rule(p, q, [0], 0, 0, Coins(LARGEST), AT) == (0, 0)
        assert verdicts(rule, p, q, [0, 1], 0) == {(0, 0): 1}


@ALL_FLOATS
def test_ratios_beyond_the_range_of_the_type_do_not_overflow(dtype):
    smallest = np.finfo(dtype).smallest_subnormal
    p, tail = row_of(np.array([1, 0], dtype)), row_of(np.array([smallest, 1], dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert algorithm_1(p, tail, [0], 0, 0, Coins(LARGEST), AT) == (0, 0)
        assert rrsw(p, tail, [0], 0, 0, Coins(LARGEST), AT) == (0, 0)
    assert ratio(F(1, 3), F(1, 2)) == F(2, 3)
    assert ratio(F(1, 2), F(1, 2)) == ratio(F(2, 3), F(1, 2)) == 1


def test_coins_and_draws_carry_their_addresses():
    p, tail = row_of(rational(1, 1, 1, 1)), row_of(rational(0, 1, 0, 7))
    coins = Coins(LARGEST)
    assert algorithm_1(p, tail, [0, 3, 1], 1, 1, coins, (4, (0, 2))) == (2, -1)
    path = (4, (0, 2))
    assert coins.addresses == [("coin", *path, 1), ("coin", *path, 0), ("coin", *path, 2), ("emit", *path, 0)]
    coins = Coins(LARGEST)
    rrsw(p, tail, [0, 3, 1], 1, 1, coins, path)
    assert coins.addresses == [("coin", *path, 0), ("coin", *path, 1), ("coin", *path, 2), ("emit", *path, 0)]


@pytest.mark.parametrize("rule", [algorithm_1, rrsw, vanilla])
@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([-1], r"candidates\[0\]: got -1, expected a token id in 0\.\.2"),  # D6: p[-1] is read in silence
        ([0, 3], r"candidates\[1\]: got 3, expected a token id in 0\.\.2"),
        ([1.0], r"candidates\[0\]: got 1\.0, expected a token id in 0\.\.2"),
        ([True], r"candidates\[0\]: got True, expected a token id in 0\.\.2"),
    ],
)
def test_candidates_outside_the_vocabulary_are_refused(rule, candidates, message):
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        rule(row_of(rational(1, 1, 1)), None, candidates, -1, 1, Coins(0.5), AT)


@pytest.mark.parametrize("rule", [algorithm_1, rrsw])
@pytest.mark.parametrize(
    ("tail", "sampled", "message"),
    [
        (None, 0, r"tail: got None, expected the law that the sampled candidate was drawn from"),
        ([1, 0, 0], 1, r"tail\[1\]: got Fraction\(0, 1\), expected a positive probability: .*"),
        ([1, 0, 0], 2, r"sampled: got 2, expected -1 or an index of the 2 candidates"),
        ([1, 0, 0], -2, r"sampled: got -2, expected -1 or an index of the 2 candidates"),
    ],
)
def test_a_sampled_candidate_needs_the_law_it_was_drawn_from(rule, tail, sampled, message):
    tail = None if tail is None else row_of(tail)
    with pytest.raises(InvalidInput, match=f"^{message}$"):
        rule(row_of(rational(1, 1, 1)), tail, [0, 1], sampled, 1, Coins(0.5), AT)


def test_a_chooser_that_rejects_at_probability_1_is_named():
    class Stubborn(Coins):
        def accept(self, probability, at=None):
            return False

    with pytest.raises(
        InvalidInput, match=r"chooser: got a rejection at probability 1, expected accept\(1\) to accept"
    ):
        vanilla(row_of([1, 0]), None, [0], -1, 1, Stubborn(0.5), AT)
