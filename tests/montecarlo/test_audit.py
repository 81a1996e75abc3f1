"""The audit: silent on lossless runs, loud on every faulty method, with the power computed first."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from exact.faults import cases
from exact.methods import methods
from montecarlo.audit_power import growth
from montecarlo.auditing import POSITIONS, Audit, audit
from montecarlo.betting import BETS, Wealth, visible_excess
from montecarlo.chunks import Chunk, Chunker
from montecarlo.functions import FUNCTIONS, SHARES, SIGNED_FROM, excesses
from montecarlo.keyed_random import Uniforms
from montecarlo.pairs import TablePair, scores
from montecarlo.planning import WITNESSES, ErrorRates, best_witness
from montecarlo.recording import Record, Row
from montecarlo.reference_run import record, whole
from montecarlo.simulator import Simulator
from rheo_core import InvalidInput, SamplingChooser, TreeShape
from tests.montecarlo.strategies import normalised

LOSSY = [name for name, method in methods.items() if method.claim == "lossy"]
FAULTS = [key for key, case in cases.items() if not case.lossless]
QUICK = {"A1", "A4", "B3b", "C3", "C9", "C11", "D1b", "D3", "E1", "F1", "R1", "R2", "R2b", "R6", "EX2"}
"""Faults of every kind that few tokens show; the others run under the marker `slow`."""
FALSE_ALARMS = [key for key, case in cases.items() if case.lossless]


def floats(model):
    """A model of rationals as one of float64 rows, each made once."""
    known = {}

    def rows(prefix):
        if prefix not in known:
            known[prefix] = np.array(model(prefix), dtype=np.float64)
        return known[prefix]

    return rows


def recorded(method, target, draft, shape, tokens, seed=0, ids=None, text=200):
    """Records of several texts of the reference decoder."""
    chooser = SamplingChooser(np.random.default_rng(seed))
    for number in range(math.ceil(tokens / text)):
        yield from record(method, target, draft, shape, chooser, text, ids=ids, request=str(number))


def report_of(records, alarm=1e-6, seed=0):
    return audit(Chunker(10).chunks(iter(records)), alarm, seed)


def table_runs(method, pair, shape, runs, length, seed):
    """`runs` texts of `length` tokens, all at once; rows depend on the last token only. Chunks, one a run."""
    simulator = Simulator(method, pair, shape, Uniforms(seed))
    tokens = np.full((runs, length + shape.depth + 1), -1, dtype=np.int64)
    position = np.zeros_like(tokens)
    filled, last = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
    number = 0
    while (filled < length).any():
        here = np.flatnonzero(filled < length)
        emitted = simulator.cycles(last[here, None], here, number).tokens
        for place in range(emitted.shape[1]):
            some = here[emitted[:, place] >= 0]
            tokens[some, filled[some]] = emitted[emitted[:, place] >= 0, place]
            position[some, filled[some]] = place
            filled[some] += 1
        last[here] = tokens[here, filled[here] - 1]
        number += 1
    for run in range(runs):
        token = tokens[run, :length]
        contexts = np.concatenate([[0], token[:-1]])[:, None]
        q = scores(pair.drafts(contexts))
        yield Chunk(
            p=pair.targets(contexts),
            q=q,
            cell=token,
            size=np.full(length, q.shape[1]),
            best=np.argsort(-q, axis=1, kind="stable")[:, :3],
            has_draft=np.full(length, True),
            position=position[run, :length],
            where=[f"run {run}: token {i}" for i in range(length)],
        )


def markov_pair(vocabulary=12, seed=0):
    rng = np.random.default_rng(seed)
    p, q = (rng.dirichlet(np.full(vocabulary, 0.6), size=vocabulary) for _ in range(2))
    return TablePair(p, 0.5 * p + 0.5 * q, lambda prefixes: prefixes[:, -1])


def test_a_thousand_lossless_runs_of_300_tokens_raise_no_alarm():
    """At alarm rate 1e-6 none; and at any rate a no more alarms than a allows, so the evidence is not just timid."""
    reports = [audit([chunk]) for chunk in table_runs("rheo", markov_pair(), TreeShape(4, 3, 8), 1000, 300, seed=1)]
    assert sum(report.evidence_of_loss for report in reports) == 0
    greatest = np.array([report.log10_evidence for report in reports])
    for rate in (0.5, 0.1, 0.01):
        assert (greatest >= -math.log10(rate)).sum() <= stats.binom.isf(1e-6, 1000, rate)
    assert (greatest > 0.3).any()


@pytest.mark.parametrize("name", LOSSY)
def test_every_lossy_method_is_caught(name):
    """Three times the tokens at which the computed power of its first tokens alone is 99 %."""
    errors = ErrorRates(1e-6, 0.01)
    witness, found = best_witness(methods[name], list(WITNESSES), 1000, errors)
    tokens = int(3 * found.audit_tokens) + 100
    target, draft = floats(witness.target), floats(witness.draft)
    records = recorded(methods[name], target, draft, witness.shape, tokens, seed=2, text=3)
    assert report_of(records).evidence_of_loss, found


def first_token_growth(case):
    """What the audit's bets gain on the first tokens of cycles at the case's own rows; None: forbidden tokens occur."""
    law, p = np.zeros(len(case.target(()))), np.array(case.target(()), dtype=np.float64)
    for (token, *_), mass in case.certificate(1).law().items():
        law[token] += float(mass)
    q = np.zeros(len(p))
    q[list(case.ids or range(len(p)))[: len(case.draft(()))]] = np.array(case.draft(()), dtype=np.float64)
    return None if (law[p == 0] > 0).any() else growth(law, p, q)


@pytest.mark.parametrize("key", [key if key in QUICK else pytest.param(key, marks=pytest.mark.slow) for key in FAULTS])
def test_every_published_fault_is_caught(key):
    """Texts of one cycle's length, so that the rows of the case come again and again. Where the first token's law is
    wrong there are enough of them for a computed power of 99 % on first tokens alone; else (a loss that only shows
    later in a cycle) 4,000 of a whole cycle."""
    case = cases[key]
    texts, length = 4000, case.shape.depth + 1
    if case.certificate(1).lossless is False:
        plan = first_token_growth(case)
        texts = 100 if plan is None else math.ceil(plan.needed(0.01))
        assert plan is None or plan.power(texts) >= 0.99
        length = case.length
    records = recorded(
        case.method, case.target, case.draft, case.shape, texts * length, seed=3, ids=case.ids, text=length
    )
    assert report_of(until_alarm(records)).evidence_of_loss


def until_alarm(records):
    """The records, audited on the way; nothing is read after the alarm, which is what an anytime-valid test is for."""
    running = Audit()
    for chunk in Chunker(10).chunks(iter(records)):
        running.update(chunk)
        yield from rebuilt(chunk)
        if running.alarmed_at is not None:
            return


def rebuilt(chunk):
    for i in range(len(chunk)):
        p, q = chunk.p[i, : chunk.size[i]], chunk.q[i, : chunk.size[i]]
        position = int(chunk.position[i])
        yield Record(chunk.where[i], int(chunk.cell[i]), whole(p), whole(q), None, position, None)


@pytest.mark.parametrize("key", FALSE_ALARMS)
def test_no_published_false_alarm_is_raised(key):
    case = cases[key]
    records = recorded(case.method, case.target, case.draft, case.shape, 300, seed=4, ids=case.ids, text=case.length)
    assert not report_of(records).evidence_of_loss


def test_conditioning_on_how_a_token_was_emitted_would_raise_a_false_alarm():
    """FAULTS I6, the reason why such fields are refused: pair W is lossless, its rejected tokens alone are not p's."""
    case = cases["A5"]
    target, draft = floats(case.target), floats(case.draft)
    records = list(recorded(methods["chain"], target, draft, TreeShape(1, 1, 1), 4000, seed=5))
    assert not report_of(records).evidence_of_loss
    emitted = Counter((each.request, each.cycle) for each in records)
    rejected = [each for each in records if emitted[each.request, each.cycle] == 1]
    assert report_of(rejected[:400]).evidence_of_loss


def naive_excess(p, q, cell, best, v):
    """Oracle: every function for one token, written out."""
    size = len(p)
    order = sorted(range(size), key=lambda i: (-p[i], i))

    def of_cell(f):
        return f(cell) - math.fsum(p[i] * f(i) for i in range(size))

    def clipped(row):
        return lambda i: 0.0 if row[i] == 0 else min(1.0, max(0.0, 1 + math.log(row[i]) / 20))

    rank = {token: math.log1p(place) / math.log1p(max(size, 2)) for place, token in enumerate(order)}
    u = math.fsum(p[i] for i in order[: order.index(cell)]) + v * p[cell]
    top = max(range(size), key=lambda i: (p[i], -i))
    return [
        of_cell(lambda i: float(i == top)),
        of_cell(clipped(p)),
        of_cell(lambda i: rank[i]),
        u - 0.5,
        abs(2 * u - 1) - 0.5,
        math.fsum(p[:cell]) + v * p[cell] - 0.5,
        of_cell(lambda i: float(i == best[0])),
        of_cell(lambda i: float(i in best)),
        of_cell(clipped(q)),
        of_cell(lambda i: q[i] / (p[i] + q[i]) if q[i] else 0.0),
        q[cell] / p[cell] - 1,
    ]


@settings(max_examples=80)
@given(st.data())
def test_functions_equal_their_definitions_and_have_mean_zero(data):
    size = data.draw(st.integers(2, 8))
    weights = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    p, q = (normalised(np.array([data.draw(weights)]), np.float64)[0] for _ in range(2))
    best = np.argsort(-q, kind="stable")[:3]
    tokens = np.flatnonzero(p > 0)
    own = [j for j, function in enumerate(FUNCTIONS) if not function.history and function.name != "not listed"]
    mean = np.zeros(len(own))
    grid = [(k + 0.5) / 50 for k in range(50)]
    for v in grid:
        count = len(tokens)
        chunk = Chunk(
            np.tile(p, (count, 1)),
            np.tile(q, (count, 1)),
            tokens,
            np.full(count, size),
            np.tile(best, (count, 1)),
            np.full(count, True),
            np.full(count, -1),
            [""] * count,
        )
        all_found = excesses(chunk, np.full(count, v))
        found, variance = all_found.value[:, own], all_found.variance
        assert not np.delete(all_found.used, own, axis=1)[:, : -len(SIGNED_FROM)].any()
        mean += p[tokens] @ found / len(grid)
        assert (variance >= 0).all()
        if v == grid[7]:
            expected = [naive_excess(p.tolist(), q.tolist(), int(token), best.tolist(), v) for token in tokens]
            np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (mean[-1] <= 1e-12).all()  # q / p: mass of q off p's support is lost, a supermartingale
    folded = 4  # on a grid of v it is 0 only up to the grid
    np.testing.assert_allclose(np.delete(mean[:-1], folded), 0, atol=1e-12)
    assert abs(mean[folded]) < 1e-3


def test_wealth_equals_its_definition():
    """Oracle: one loop over tokens, functions, strata and bets."""
    rng = np.random.default_rng(6)
    excess, stratum = rng.uniform(-0.6, 0.6, size=(40, 2)), rng.integers(-1, 3, size=40)
    one_sided = np.array([False, True])
    wealth = Wealth(3, one_sided)
    path = np.concatenate([wealth.play(excess[:17], stratum[:17]), wealth.play(excess[17:], stratum[17:])])
    for end in (1, 17, 18, 40):
        total = 0.0
        for place in range(4):
            weight = 0.5 if place == 0 else 0.5 / 3
            for j in range(2):
                bets = [b for b in BETS if b > 0 or not one_sided[j]]
                for bet in bets:
                    product = 1.0
                    for t in range(end):
                        if place == 0 or stratum[t] == place - 1:
                            product *= 1 + bet * excess[t, j]
                    total += weight / 2 / len(bets) * product
        assert path[end - 1] == pytest.approx(math.log(total), abs=1e-9)


def test_the_stated_visible_bias_is_seen():
    """A coin biased by the stated amount alarms in nearly all of 30 runs; one biased by a fifth of it in hardly any."""
    tokens = 4000
    visible = visible_excess(tokens, 0.5, -math.log(1e-6), float(SHARES[0]))
    rng = np.random.default_rng(7)
    for bias, least, most in ((visible, 26, 30), (visible / 5, 0, 2)):
        alarms = 0
        for _ in range(30):
            cell = (rng.random(tokens) > 0.5 + bias).astype(np.int64)
            chunk = Chunk(
                np.full((tokens, 2), 0.5),
                np.full((tokens, 2), 0.5),
                cell,
                np.full(tokens, 2),
                np.tile([0], (tokens, 1)),
                np.full(tokens, True),
                np.full(tokens, -1),
                [str(i) for i in range(tokens)],
            )
            alarms += audit([chunk]).evidence_of_loss
        assert least <= alarms <= most


def test_computed_power_is_the_power_that_is_seen():
    """FAULTS D3 (pair W, law = q): at the tokens needed for 90 % nearly that many of 60 runs alarm, or more."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.2, 0.1])
    plan = growth(q, p, q)
    tokens = math.ceil(plan.needed(0.1))
    assert plan.power(tokens) == pytest.approx(0.9, abs=0.02)
    rng = np.random.default_rng(8)
    alarms = 0
    for _ in range(60):
        cell = rng.choice(3, size=tokens, p=q)
        chunk = Chunk(
            np.tile(p, (tokens, 1)),
            np.tile(q, (tokens, 1)),
            cell,
            np.full(tokens, 3),
            np.tile(np.arange(3), (tokens, 1)),
            np.full(tokens, True),
            np.zeros(tokens, dtype=np.int64),
            [str(i) for i in range(tokens)],
        )
        alarms += audit([chunk]).evidence_of_loss
    assert alarms >= stats.binom.ppf(0.001, 60, 0.9)


def test_the_report_says_direction_size_and_position():
    """A bias planted at position 1 only: there alone is evidence, and the draft's law is named."""
    rng = np.random.default_rng(9)
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    records = []
    for i in range(6000):
        position = i % 3
        law = 0.7 * p + 0.3 * q if position == 1 else p
        records.append(Record(f"t{i}", int(rng.choice(4, p=law)), whole(p), whole(q), None, position, None))
    report = report_of(records)
    assert report.evidence_of_loss
    evidence = {each.position: each.log10_evidence for each in report.positions}
    assert evidence[1] > 6 > 1 > max(evidence[0], evidence[2])
    assert "draft" in report.leading.meaning or "rank" in report.leading.name
    share = next(bias for bias in report.biases if bias.name == "q / (p + q)")
    mean = 0.3 / 3 * float(((q - p) * q / (p + q)).sum())
    assert share.excess == pytest.approx(mean, abs=5 * share.standard_error)
    assert share.meaning == "the tokens lean towards the draft's law"


@pytest.mark.parametrize("cut", [3, 1])
def test_shortened_rows_lose_power_but_no_validity(cut):
    """The same tokens with rows cut to their best few: lossless stays silent, FAULTS D3 is still seen."""
    rng = np.random.default_rng(10)
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.7, 0.1, 0.1, 0.1])

    def cut_row(law):
        ids = np.argsort(-law, kind="stable")[:cut]
        return Row(ids, law[ids], float(1 - law[ids].sum()))

    for law, loss in ((p, False), (q, True)):
        tokens = rng.choice(4, size=3000, p=law)
        records = [Record(str(i), int(t), cut_row(p), cut_row(q), None, None, None) for i, t in enumerate(tokens)]
        assert report_of(records).evidence_of_loss == loss


def test_without_draft_rows_only_the_target_is_used():
    rng = np.random.default_rng(11)
    p = np.array([0.5, 0.3, 0.2])
    records = [Record(str(i), int(t), whole(p), None, None, None, None) for i, t in enumerate(rng.choice(3, 500, p=p))]
    report = report_of(records)
    assert report.with_draft == 0
    named = {bias.name for bias in report.biases}
    assert named.isdisjoint(f.name for f in FUNCTIONS if f.needs_draft)
    assert named >= {f.name for f in FUNCTIONS if not (f.needs_draft or f.history)} - {"not listed"}
    assert report.positions == ()


def test_chunks_of_any_size_give_the_same_evidence(monkeypatch):
    pair = markov_pair()
    (chunk,) = table_runs("rheo", pair, TreeShape(3, 2, 4), 1, 400, seed=12)
    whole_run = audit([chunk])
    parts = []
    for first in range(0, 400, 37):
        piece = slice(first, first + 37)
        fields = {name: value[piece] for name, value in vars(chunk).items() if value is not None}
        parts.append(replace(chunk, **fields))
    assert audit(parts).log10_evidence == pytest.approx(whole_run.log10_evidence, abs=1e-9)


def test_positions_beyond_the_last_are_put_together():
    p = whole([0.5, 0.5])
    records = [Record(str(i), i % 2, p, p, None, i, None) for i in range(40)]
    report = report_of(records)
    assert [each.position for each in report.positions] == list(range(POSITIONS))
    assert report.positions[-1].tokens == 40 - POSITIONS + 1


@pytest.mark.parametrize(("options", "message"), [({"alarm": 0}, "false-alarm"), ({"seed": -1}, "seed: got -1")])
def test_bad_options_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        Audit(**options)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, method in methods.items() if method.claim == "lossless"])
def test_no_lossless_method_of_the_catalogue_is_suspected(name):
    """By position in the cycle too: under losslessness a token is a draw from its row whatever its place."""
    target, draft = floats(WITNESSES[2].target), floats(WITNESSES[2].draft)
    records = recorded(methods[name], target, draft, TreeShape(2, 3, 6), 3000, seed=6, text=30)
    assert not report_of(records).evidence_of_loss
