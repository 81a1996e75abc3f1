"""What no record may do to the evidence, and what earlier tokens show: blind records, serial dependence, twins."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from montecarlo.auditing import Audit, audit
from montecarlo.betting import BETS, Wealth
from montecarlo.chunks import Chunk, Chunker, Past
from montecarlo.functions import FUNCTIONS, ONE_SIDED, SHARES, TOLERANT_RATIO, excesses
from montecarlo.recording import Record, Row
from montecarlo.reference_run import whole

P, Q = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.3, 0.4, 0.2, 0.1])
HALF = np.array([0.5, 0.5])


def report_of(records, **options):
    return audit(Chunker(10).chunks(iter(records)), **options)


def texts(tokens, p, draft=None):
    """Records of texts (rows of `tokens`), one request each, all from one row."""
    row, q = whole(p), None if draft is None else whole(draft)
    for number, text in enumerate(tokens):
        for place, token in enumerate(text):
            yield Record(f"{number}:{place}", int(token), row, q, None, None, str(number))


@pytest.mark.parametrize(
    ("p", "q"),
    [([1 - 1e-310, 1e-310], [0.5, 0.5]), ([1, 5e-324], [0, 1.0]), ([1 - 1e-16, 1e-16], [1e-300, 1])],
    ids=["p of 1e-310", "subnormal", "q / p of 1e16"],
)
def test_one_record_neither_blinds_nor_ruins_the_evidence(p, q):
    first = Record("a", 1, whole(p), whole(q), None, None, None)
    last = [Record(str(i), 1, whole([0.7, 0.3]), whole([0.2, 0.8]), None, None, None) for i in range(5000)]
    report = report_of([first, *last])
    assert report.evidence_of_loss
    assert math.isfinite(report.log10_evidence)
    assert report.log10_evidence > 500
    alone = Audit()
    for chunk in Chunker(10).chunks(iter([first] * 3)):
        alone.update(chunk)
    assert alone.log_wealth >= 3 * math.log(0.5)


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_every_factor_is_finite_and_at_least_a_half(tolerance):
    """Whatever a token does. Planted fault: bets of 0.9, as they were, lose nine tenths."""
    one_sided = np.array([False, True])
    wealth = Wealth(2, one_sided, None, tolerance, np.array([1.0, 1e6 if tolerance == 0 else 4.0]))
    excess = np.array([[x, y] for x in (-1.0, 0.0, 1.0) for y in (-1.0, 0.0, 1e6 - 1)])
    gains = np.log(wealth.factors(excess, np.full(excess.shape, True)))
    assert np.isfinite(gains).all()
    assert gains.min() >= math.log(0.5) - 1e-12
    assert np.log1p(-0.9) < math.log(0.5)
    assert np.abs(BETS).max() == 0.5


def test_the_evidence_is_the_greatest_that_was_reached():
    """A loss that ends early stays seen: 400 tokens of the draft, then 6,000 of the target."""
    rng = np.random.default_rng(0)
    tokens = np.concatenate([np.full(400, 1), rng.choice(2, size=6_000)])
    running = Audit()
    for chunk in Chunker(10).chunks(texts([tokens], HALF)):
        running.update(chunk)
    assert running.log_evidence > running.log_wealth + 3


def test_a_forbidden_token_alarms_at_once():
    p = whole([0.5, 0.5, 0.0])
    records = [Record("a:1", 0, p, None, None, None, None), Record("a:2", 2, p, None, None, None, None)]
    report = report_of(records)
    assert report.evidence_of_loss
    assert (report.impossible, report.first_impossible, report.alarmed_at) == (1, "a:2", "a:2")


def serial(kind, count, seed=0):
    """Tokens from [1/2, 1/2] each, which depend on those before them."""
    rng = np.random.default_rng(seed)
    if kind == "alternating":
        return np.arange(count) % 2
    if kind == "every token twice":
        return np.repeat(rng.integers(2, size=count // 2), 2)
    if kind == "a switch of .9":
        return (np.cumsum(rng.random(count) < 0.9) + 1) % 2
    if kind == "a switch of .55":
        return (np.cumsum(rng.random(count) < 0.55) + 1) % 2
    if kind == "a period of 4":
        return np.tile([0, 0, 1, 1], count // 4)
    return rng.integers(2, size=count)


@pytest.mark.parametrize(
    "kind", ["alternating", "every token twice", "a switch of .9", "a switch of .55", "a period of 4", "independent"]
)
def test_tokens_that_depend_on_earlier_ones_are_evidence(kind):
    """Rows [1/2, 1/2]; every token's own law is right. The power against a switch of s is computed: a bet of b on
    "same as the last" has mean log gain g and variance v, and the normal law says when the bar is passed."""
    count = 20_000 if kind == "a switch of .55" else 4_000
    report = report_of(texts([serial(kind, count)], HALF))
    assert report.evidence_of_loss == (kind != "independent")
    switch = {"a switch of .9": 0.9, "a switch of .55": 0.55}.get(kind)
    if switch:
        j = next(j for j, function in enumerate(FUNCTIONS) if function.name == "same as the last token")
        bar = -math.log(report.alarm) + math.log(2 * len(BETS) / SHARES[j])
        up, down = np.log1p(-BETS / 2), np.log1p(BETS / 2)
        mean = switch * np.log1p(BETS / 2) + (1 - switch) * up
        spread = np.sqrt(switch * (1 - switch)) * np.abs(down - up)
        assert ((count * mean - bar) / np.sqrt(count) / spread).max() > 5  # misses with probability < 1e-6


def test_a_large_vocabulary_shows_serial_dependence_in_the_order_of_its_tokens():
    """Antithetic draws from 1,000 tokens: no token comes again soon, but ranks alternate."""
    rng = np.random.default_rng(1)
    u = rng.random(3000)
    u[1::2] = 1 - u[::2]
    report = report_of(texts([(u * 1000).astype(int)], np.full(1000, 0.001)))
    assert report.evidence_of_loss
    assert "serial" in report.leading.name
    assert not report_of(texts([rng.integers(1000, size=3000)], np.full(1000, 0.001))).evidence_of_loss


@pytest.mark.parametrize("order", ["one after another", "side by side"])
def test_twins_are_evidence(order):
    """Pairs of requests from one stream of random numbers: equal texts, each alone a draw of its rows."""
    rng = np.random.default_rng(2)
    records: list[Record] = []
    for pair in range(300):
        text = rng.choice(4, size=19, p=P)
        twins = [[Record("", int(t), whole(P), whole(Q), None, None, f"{pair}.{x}") for t in text] for x in (0, 1)]
        for part in twins if order == "one after another" else zip(*twins, strict=True):
            records.extend(part)
    report = report_of(records)
    assert report.evidence_of_loss
    assert report.leading.name in ("same text", "same place", "transform by id, same place")
    alone = [each for each in records if str(each.request).endswith("0")]
    assert not report_of(alone).evidence_of_loss


def test_a_text_that_keeps_to_one_temperature_is_evidence():
    """Every other text is drawn colder, the others hotter, so that all together are unbiased."""
    rng = np.random.default_rng(3)
    p, d = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.08, 0.02, -0.04, -0.06])
    cold_and_hot = [rng.choice(4, size=100, p=p + (d if number % 2 else -d)) for number in range(150)]
    assert report_of(texts(cold_and_hot, p)).evidence_of_loss
    assert not report_of(texts([rng.choice(4, size=100, p=p) for _ in range(60)], p)).evidence_of_loss


@pytest.mark.parametrize(("tokens", "loss"), [(1500, True), (1500, False)])
def test_unlisted_tokens_are_one_function_and_no_token(tokens, loss):
    """The rest of a shortened row comes too often: [.3 .2 .1 | .4], emitted with .5. Planted fault: the same tokens
    beside rows whose rest is as it is emitted."""
    rng = np.random.default_rng(4)
    rest = 0.4 if loss else 0.5
    listed = np.array([0.3, 0.2, 0.1]) / 0.6 * (1 - rest)
    row = Row(np.array([5, 3, 9]), listed, rest)
    emitted = rng.choice([5, 3, 9, 1000, 2000, 3000], size=tokens, p=[0.25, 1 / 6, 1 / 12, 0.2, 0.2, 0.1])
    report = report_of([Record(str(i), int(t), row, None, None, None, "a") for i, t in enumerate(emitted)])
    assert report.evidence_of_loss == loss
    assert report.unlisted == pytest.approx(rest)
    if loss:
        found = next(bias for bias in report.biases if bias.name == "not listed")
        assert found.excess == pytest.approx(0.1, abs=5 * found.standard_error)
        assert found.log10_evidence > 3
        by_id = next(bias for bias in report.biases if bias.name == "transform by id")
        assert abs(by_id.excess) < 5 * by_id.standard_error


def perturbed(rng, rows, variation):
    """Laws at `variation` from `rows` [n, V] in total variation, each moved that far from its likeliest entry."""
    laws = rows.copy()
    index, to = np.arange(len(rows)), rng.integers(1, rows.shape[1], size=len(rows))
    best = rows.argmax(axis=1)
    laws[index, best] -= variation
    laws[index, (best + to) % rows.shape[1]] += variation
    return laws


def many(rng, laws, rows):
    """Chunks of tokens drawn from `laws` [n, V] and recorded beside `rows`."""
    token = (rng.random(len(laws))[:, None] > laws.cumsum(axis=1)).sum(axis=1)
    size = rows.shape[1]
    for first in range(0, len(rows), 256):
        part = slice(first, first + 256)
        count = len(token[part])
        yield Chunk(
            p=rows[part],
            q=np.full((count, size), 1 / size),
            cell=token[part],
            size=np.full(count, size),
            best=np.zeros((count, 1), dtype=np.int64),
            has_draft=np.full(count, True),
            position=np.full(count, -1),
            where=[f"token {first + i}" for i in range(count)],
        )


def bfloat16(rows):
    """Rows rounded to 8 bits of mantissa and normalised."""
    bits = rows.astype(np.float32).view(np.uint32)
    near = ((bits + 0x8000) & 0xFFFF0000).view(np.float32).astype(np.float64)
    return near / near.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("kind", "tokens", "tolerance", "loss"),
    [
        ("off by .001", 100_000, 2e-3, False),
        ("off by .02", 60_000, 0.0, True),
        ("off by .02", 60_000, 0.03, False),
        ("rounded to bfloat16", 100_000, 2e-3, False),
        ("off by .05", 100_000, 2e-3, True),
    ],
)
def test_rows_that_are_only_nearly_right_have_a_tolerance(kind, tokens, tolerance, loss):
    """Always in one direction, which is the worst. Without the tolerance the same rounding is evidence in the end."""
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.full(8, 0.5), size=1000)[rng.integers(1000, size=tokens)]
    laws = rows
    if kind == "rounded to bfloat16":
        rows = bfloat16(rows)
        assert 1e-4 < np.abs(laws - rows).sum(axis=1).max() / 2 < 2e-3
    else:
        laws = perturbed(rng, rows, float(kind.removeprefix("off by ")))
    running = Audit(tolerance=tolerance)
    for chunk in many(rng, laws, rows):
        running.update(chunk)
        if running.alarmed_at is not None:
            break
    assert running.report().evidence_of_loss == loss


@settings(max_examples=30)
@given(st.data())
def test_every_bet_is_at_best_fair_within_the_tolerance(data):
    """Oracle: the greatest mean of each factor over all laws within `eps` of the row moves eps from the token where the
    factor is least to the one where it is greatest. Planted fault: without the price, some mean is above 1."""
    size, eps = data.draw(st.integers(2, 6)), data.draw(st.sampled_from([1e-3, 0.02, 0.3]))
    weights = st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)
    p, q = (np.array(data.draw(weights), dtype=np.float64) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    chunk = next(many(np.random.default_rng(0), np.tile(p, (size, 1)), np.tile(p, (size, 1))))
    past = Past(
        guesses=np.tile(data.draw(st.lists(st.integers(-1, size - 1), min_size=5, max_size=5)), (size, 1)),
        recent=np.tile(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), (size, 1)),
        later=np.tile(q[::-1], (size, 1)),
        text=np.zeros(size, dtype=np.int64),
        place=np.zeros(size, dtype=np.int64),
        after_rejection=np.zeros(size, dtype=bool),
        stopped=np.zeros(size, dtype=bool),
    )
    chunk = replace(chunk, cell=np.arange(size), q=np.tile(q, (size, 1)), past=past)
    ranges = np.where(ONE_SIDED, TOLERANT_RATIO, 1)
    greatest = {}
    for tolerance in (eps, 0.0):
        wealth = Wealth(1, ONE_SIDED, SHARES, tolerance, ranges)
        grid = [(k + 0.5) / 64 for k in range(64)]
        found = [excesses(chunk, np.full(size, v), TOLERANT_RATIO) for v in grid]
        factors = np.mean([wealth.factors(each.value, each.used) for each in found], axis=0)  # [V, J, B]
        moved = np.zeros(factors.shape[1:])
        for source in range(size):
            amount = min(eps, p[source])
            for sink in range(size):
                moved = np.maximum(moved, amount * (factors[sink] - factors[source]))
        greatest[tolerance] = float((np.tensordot(p, factors, axes=1) + moved).max())
        assert factors.min() >= 0.5 - 1e-12
    assert greatest[eps] <= 1 + 1e-4  # the folded transform is averaged on a grid
    assert greatest[0.0] > 1
