"""The cell-by-cell proofs: their arithmetic, what they take from rheo_core, and faults that must not get through."""

import random
from fractions import Fraction

import pytest

from exact import law as exact_law
from exact.proofs import enumerated, layer, loop, pools
from exact.proofs.claims import LOSSLESS, POOL_CLAIMS, THEOREM_3, Claim, emitted, expression, p, q, w
from exact.proofs.compiled import NotCompiled, compiled, degree, holds
from exact.proofs.engines.cells import ALL_PARTS, OPEN_PARTS, RowCell, cells
from exact.proofs.engines.rings import generators, value
from exact.proofs.symbolic import Reduced, Symbolic, Undecided, law, row_of
from rheo_core.verification import algorithm_1, sequential_rejection, vanilla

pytestmark = pytest.mark.exact


def point_of(cell, seed):
    """Positive integers for a cell's coordinates, and the laws there."""
    draw = random.Random(seed)
    size = len(cell.parts)
    return cell.point([draw.randint(1, 9) for _ in range(size)], [draw.randint(1, 9) for _ in range(size)])


def test_both_engines_have_one_arithmetic():
    for engine in ("flint", "sympy"):
        a, b = (Reduced(x) for x in generators(["a", "b"], engine))
        mean = (a / (a + b)) * a + (b / (a + b)) * b
        assert mean == (a * a + b * b) / (a + b)
        assert value(mean.num, [Fraction(1), Fraction(3)]) / value(mean.den, [Fraction(1), Fraction(3)]) == Fraction(
            5, 2
        )
        assert (a < a + b, a / a == 1, 1 - a / (a + b) == b / (a + b)) == (True, True, True)


def test_what_a_cell_does_not_decide_is_refused():
    a, b = (Symbolic(x) for x in generators(["a", "b"]))
    with pytest.raises(Undecided):
        bool(a < b)
    with pytest.raises(ZeroDivisionError):
        a / (b - b)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_cells_part_all_pairs_of_laws(size):
    """Every pair of laws with small denominators lies in exactly one cell, faces counted."""
    grid = [[Fraction(x, 3) for x in weights] for weights in loop_weights(size, 3)]
    known = [{cell.parts for cell in cells(size, m, ALL_PARTS)} for m in range(size)]
    for p_row in grid:
        for q_row in grid:
            parts = tuple(((1 if min(x, y) else 0), (x > y) - (x < y)) for x, y in zip(p_row, q_row, strict=True))
            for m in range(size):
                if not any(q_row[:m]):
                    assert parts in known[m]


def loop_weights(size, total):
    if size == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in loop_weights(size - 1, total - first):
            yield (first, *rest)


@pytest.mark.parametrize("rule", [algorithm_1, vanilla])
def test_full_runs_on_symbols_are_full_runs_on_numbers(rule):
    """The oracle: every run of the verifier on a cell, faces included, at a point of it, against plain enumeration."""
    tried = 0
    for cell in (cell for m in range(3) for cell in cells(3, m, ALL_PARTS)):
        rows, tail, _ = cell.rows()
        mass = layer.total(rows)
        names = [0 if isinstance(x, int) else Reduced(x, mass) for x in rows]
        tails = [0 if isinstance(x, int) else Reduced(x, mass) for x in tail]
        y = next(v for v in range(cell.m, 3) if not isinstance(tail[v], int))
        pool = [*range(cell.m), y, *(v for v in range(cell.m, 3) if v != y)]

        def on(p_row, q_row, pool=pool, cell=cell):
            return lambda chooser: rule(row_of(p_row), row_of(q_row), pool, cell.m, cell.m, chooser, (0, ()))

        symbolic = law(on(names, tails))
        p_law, q_law = point_of(cell, tried)
        numbers = exact_law(on(p_law, q_law))
        coordinates = coordinates_at(cell, p_law, q_law)
        there = {key: number_at(mass, coordinates) for key, mass in symbolic.items()}
        assert {key: mass for key, mass in there.items() if mass} == numbers
        tried += 1
    assert tried == 141


def coordinates_at(cell, p_row, q_row):
    overlap = [min(x, y) for x, y in zip(p_row, q_row, strict=True)]
    return overlap + [abs(x - y) for x, y in zip(p_row, q_row, strict=True)]


def number_at(number, coordinates):
    return value(number.num, coordinates) / value(number.den, coordinates)


@pytest.mark.parametrize("seed", range(12))
def test_the_letters_on_a_cell_are_the_letters_by_enumeration(seed):
    """The step by hand: acceptance and emission from the coin, the residual and the loop lemma, against full runs."""
    draw = random.Random(seed)
    size = draw.randint(2, 5)
    m = draw.randrange(size)
    cell = draw.choice(list(cells(size, m, draw.choice([OPEN_PARTS, ALL_PARTS]))))
    found, (p_law, q_law) = layer.layer(cell), point_of(cell, seed)
    oracle, coordinates = enumerated.rows(p_law, q_law, m), coordinates_at(cell, p_law, q_law)
    for z in (found.below, found.above):
        rows = found.rows(z)
        for count in range(m + 1, size + 1):
            assert at(rows.functions["A"](count), coordinates) == oracle.functions["A"](count)
        assert [at(x, coordinates) for x in rows.rows["P"]] == oracle.rows["P"] == p_law
        assert [at(x, coordinates) for x in rows.rows["r"]] == oracle.rows["r"]


def at(number, coordinates):
    return number_at(number, coordinates) if isinstance(number, Symbolic) else value(number, coordinates)


@pytest.mark.parametrize(
    ("engine", "parts", "limit"), [("flint", OPEN_PARTS, 6), ("flint", ALL_PARTS, 3), ("sympy", OPEN_PARTS, 3)]
)
def test_claims_are_proved_and_their_controls_refuted(engine, parts, limit):
    """Polynomials of both libraries; the faces as cells of their own, where other branches of the code run."""
    found = pools.prove_pools(limit=limit, parts=parts, engine=engine)
    assert [each.name for each in found] == [claim.name for claim in POOL_CLAIMS]
    for each in found:
        assert each.as_expected, each
        assert each.verdict == "proved"
        assert each.cases > 15
        assert each.control.witness is not None


def test_a_refutation_is_a_pool_whose_tokens_fall_in_q():
    claim = Claim("emits q~", "none", LOSSLESS.control, LOSSLESS.statement, over="w")
    (found,) = pools.prove_pools([claim], limit=3)
    assert found.verdict == "refuted"
    assert found.witness is not None
    case = found.witness.case
    assert list(case["q~"])[case["m"] :] == sorted(case["q~"][case["m"] :], reverse=True)
    rows = enumerated.rows(case["p"], case["q~"], case["m"]).at("w", case["w"])
    assert not holds(claim.statement, rows)
    assert found.control.verdict == "proved"
    assert not found.as_expected


def wrong_residual(p_row, tail, candidates, sampled, lead, chooser, at):
    """Algorithm 1 that goes on from p after Y is rejected."""
    u_s = candidates[sampled]
    if chooser.accept(min(1, p_row[u_s] / tail[u_s]), ("coin", *at, sampled)):
        return u_s, sampled
    rest = [i for i in range(len(candidates)) if i != sampled]
    return sequential_rejection(p_row / sum(p_row.tolist()), candidates, rest, chooser, at)


def wrong_coin(p_row, tail, candidates, sampled, lead, chooser, at):
    """Algorithm 1 with the coin p(u) instead of min(1, p(u) / q~(u))."""
    u_s = candidates[sampled]
    if chooser.accept(p_row[u_s] / (p_row[u_s] + tail[u_s]), ("coin", *at, sampled)):
        return u_s, sampled
    return sequential_rejection(p_row / sum(p_row.tolist()), [], [], chooser, at)


@pytest.mark.parametrize("fault", [wrong_residual, wrong_coin])
def test_a_faulty_verifier_is_not_proved(fault, monkeypatch):
    """A planted fault: what the layer takes from the code is no longer what is claimed of it."""
    monkeypatch.setattr(layer, "algorithm_1", fault)
    with pytest.raises((AssertionError, Undecided)):
        pools.prove_pools([LOSSLESS, THEOREM_3], limit=3)


def test_statements_that_a_cell_cannot_decide_are_refused():
    assert degree(THEOREM_3.statement) == 1
    with pytest.raises(NotCompiled, match="degrees"):
        degree(expression(p[w], p[w] * q[w]))
    with pytest.raises(NotCompiled):
        compiled(emitted[w] ** 2)


def test_assumptions_are_checked_where_they_are_claimed_to_hold():
    with pytest.raises(ArithmeticError):
        RowCell(((0, 1), (0, 1)), 0).point([1, 1], [1, 1])
    assert not RowCell(((1, 1), (1, 1)), 0).satisfiable


def test_the_loop_lemma():
    found = loop.prove_loop()
    assert [each.verdict for each in found] == ["proved"] * 4
    assert all(each.as_expected for each in found)
    assert loop.prove_loop(limit=3, engine="sympy")[0].verdict == "proved"


def test_the_loop_lemma_needs_the_renormalisation(monkeypatch):
    """A planted fault: a candidate's entry is zeroed and the rest left as it was."""

    def careless(r, candidates, order, chooser, at):
        for i in order:
            if chooser.accept(r[candidates[i]]):
                return candidates[i], i
        return chooser.index(r), -1

    monkeypatch.setattr(loop, "sequential_rejection", careless)
    found = loop.prove_loop(limit=3)
    assert {each.verdict for each in found[:2]} == {"refuted"}
    assert found[0].witness is not None


@pytest.mark.benchmark
def test_twelve_tokens_within_a_minute():
    """All m and n for V <= 12: 60 s; held to three times that."""
    from exact.runtime.executors import processes

    with processes(0) as executor:
        found = pools.prove_pools(executor=executor)
    assert all(each.as_expected for each in found)
    assert sum(each.seconds for each in found) < 3 * 60
    by_name = {each.name: each.cases for each in found}
    assert by_name[THEOREM_3.name] == 163_794
