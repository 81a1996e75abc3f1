"""How many samples show a loss, before any are drawn.

For a law that is known exactly (small rows, by enumeration) the power of each test is computed; for an unknown one the
worst case over all laws at a given total variation is. Chi-square is looked at once; the e-process after every batch,
which costs a fixed factor in samples and buys stopping early.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction as F

import numpy as np
from scipy import special

from exact.acceptance import table1
from exact.enumeration.cycle_law import cycle_law, joint_law, target_law
from exact.enumeration.rationals import exact_law
from exact.methods.load import own_errors
from exact.methods.rows_file import Rows
from exact.runtime.executors import in_order
from montecarlo.audit_power import growth
from montecarlo.goodness import (
    CONCENTRATIONS,
    Floats,
    divergence,
    noncentrality_needed,
    samples_needed,
    variation_radius,
)
from rheo_core import InvalidInput, Method, TreeShape
from rheo_core.models import ModelPair, Prefix


@dataclass(frozen=True)
class ErrorRates:
    """The rates that a plan is made for: false alarm of the test, miss of the loss."""

    alarm: float
    miss: float

    def __post_init__(self) -> None:
        for name in ("alarm", "miss"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidInput(name, getattr(self, name), "a probability between 0 and 1")


def evidence_bar(degrees: int, alarm: float) -> float:
    """The chi-square value at which the e-process of `goodness.log_evidence` reaches 1/alarm, with its best prior.

    A Dirichlet(c p) mixture gives log E = X^2 n / (2 (n + c)) - degrees / 2 * log(1 + n / c) for large n; the bar is
    its smallest X^2 over n / c, the average over the priors charged.
    """
    asked = math.log(len(CONCENTRATIONS) / alarm)

    ratio = np.exp(np.linspace(-7, 14, 2000))
    return float(((1 + 1 / ratio) * (2 * asked + degrees * np.log1p(ratio))).min())


def critical(test: str, degrees: int, alarm: float) -> float:
    """The chi-square value from which a test ("chi-square" or "e-process") rejects."""
    return float(special.chdtri(degrees, alarm)) if test == "chi-square" else evidence_bar(degrees, alarm)


def power(test: str, samples: int, degrees: int, spread: float, alarm: float) -> float:
    """Probability that a test rejects with `samples` when sum (P - p)^2 / p = `spread`."""
    if degrees < 1 or not spread > 0:
        return 0.0
    if math.isinf(spread):
        return 1.0
    return 1 - float(special.chndtr(critical(test, degrees, alarm), degrees, samples * spread))


def needed(test: str, degrees: int, spread: float, errors: ErrorRates) -> float:
    """Samples with which a test rejects except with probability `miss`; inf where there is no loss to see."""
    if degrees < 1 or not spread > 0:
        return math.inf
    return noncentrality_needed(critical(test, degrees, errors.alarm), degrees, errors.miss) / spread


@dataclass(frozen=True)
class Plan:
    """One test on a law of `cells` cells, whatever the direction of the loss: samples for a TV, TV for samples."""

    test: str
    samples: float
    variation: float


def plans(cells: int, errors: ErrorRates, *, variation: float | None = None, samples: int | None = None) -> list[Plan]:
    """The samples that a total variation needs, or the one that samples can see, by each of the three tests."""
    if cells < 2:
        raise InvalidInput("cells", cells, "an int of at least 2")
    if (variation is None) == (samples is None):
        raise InvalidInput("power", (variation, samples), "either a total variation or a number of samples")
    if variation is not None:
        if not 0 < variation <= 1:
            raise InvalidInput("tv", variation, "a number in (0, 1]")
        return [
            Plan("chi-square", samples_needed(variation, cells - 1, errors.alarm, errors.miss), variation),
            Plan("e-process", math.ceil(needed("e-process", cells - 1, 4 * variation**2, errors)), variation),
            Plan("total variation", _radius_samples(cells, variation, errors), variation),
        ]
    assert samples is not None
    if samples < 1:
        raise InvalidInput("samples", samples, "an int of at least 1")
    seen = [math.sqrt(needed(test, cells - 1, 4.0, errors) / samples) for test in ("chi-square", "e-process")]
    visible = [*seen, _radius_seen(cells, samples, errors)]
    names = ("chi-square", "e-process", "total variation")
    return [Plan(name, samples, min(1.0, value)) for name, value in zip(names, visible, strict=True)]


def _radius_seen(cells: int, samples: int, errors: ErrorRates) -> float:
    """Total variation that surely leaves the radius: E TV of the counts is at least that of the law."""
    flat = np.full(cells, 1 / cells)
    return variation_radius(samples, flat, errors.alarm) + math.sqrt(math.log(1 / errors.miss) / (2 * samples))


def _radius_samples(cells: int, variation: float, errors: ErrorRates) -> int:
    low, high = 1, 1
    while _radius_seen(cells, high, errors) > variation:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _radius_seen(cells, middle, errors) <= variation else (middle + 1, high)
    return low


@dataclass(frozen=True)
class DetectableShift:
    """Small rows on which some wrong methods show."""

    name: str
    target: Callable[[Prefix], tuple[F, ...]]
    draft: Callable[[Prefix], tuple[F, ...]]
    shape: TreeShape


def _by_last(root: tuple[F, ...], rows: dict[int, tuple[F, ...]]) -> Callable[[Prefix], tuple[F, ...]]:
    return lambda prefix: rows[prefix[-1]] if prefix else root


_THIRDS = (F(1, 3), F(1, 3), F(1, 3))

WITNESSES = (
    DetectableShift("Table 1", table1.target, table1.draft, table1.SHAPE),
    DetectableShift(
        "one-hot child",
        lambda prefix: (F(0), F(1, 2), F(1, 2)),
        _by_last((F(1, 5), F(2, 5), F(2, 5)), {0: _THIRDS, 1: _THIRDS, 2: (F(1), F(0), F(0))}),
        TreeShape(2, 2, 2),
    ),
    DetectableShift(
        "three tokens",
        _by_last(
            (F(0), F(1, 3), F(2, 3)),
            {0: (F(1, 5), F(4, 5), F(0)), 1: (F(1, 6), F(2, 3), F(1, 6)), 2: (F(0), F(1, 2), F(1, 2))},
        ),
        _by_last(
            (F(2, 7), F(1, 7), F(4, 7)),
            {0: (F(3, 5), F(1, 5), F(1, 5)), 1: (F(1, 2), F(1, 2), F(0)), 2: (F(1, 2), F(1, 2), F(0))},
        ),
        TreeShape(3, 2, 4),
    ),
)
"""Between them they show every lossy method of the catalogue."""


@dataclass(frozen=True)
class MethodPower:
    """What it takes to catch one method on some rows by the joint law of its first `length` tokens.

    `audit_tokens`: recorded first tokens of cycles at these rows with which the audit raises its alarm.
    """

    method: str
    rows: str
    length: int
    variation: float
    spread: float
    cells: int
    power: dict[str, float]
    needed: dict[str, float]
    audit_tokens: float


def laws(method: Method, pair: ModelPair, shape: TreeShape, length: int) -> tuple[Floats, Floats]:
    """Exact laws (method's, target's) of the first `length` tokens as aligned rows; one cycle, continued from p."""
    emitted, _ = cycle_law(method, pair, (), shape)
    got = joint_law(emitted, pair.p, length)
    right = target_law(lambda prefix: exact_law(pair.p(prefix)), length)
    keys = sorted(got.keys() | right.keys())
    return np.array([float(got.get(key, 0)) for key in keys]), np.array([float(right.get(key, 0)) for key in keys])


def method_power(method: Method, witness: DetectableShift, samples: int, errors: ErrorRates) -> MethodPower:
    """The power against one method on one set of rows, at the length (1 to 3 tokens) that shows it best."""
    pair = ModelPair(witness.target, witness.draft)
    audit_tokens = _audit_tokens(method, pair, witness.shape, errors)
    best: MethodPower | None = None
    for length in range(1, min(3, witness.shape.depth + 1) + 1):
        law, p = laws(method, pair, witness.shape, length)
        spread, degrees = divergence(law, p), int((p > 0).sum()) - 1
        spread = spread if spread > 1e-20 else 0.0
        tests = ("chi-square", "e-process")
        found = MethodPower(
            method=method.name,
            rows=witness.name,
            length=length,
            variation=float(np.abs(law - p).sum() / 2),
            spread=spread,
            cells=degrees + 1,
            power={test: power(test, samples, degrees, spread, errors.alarm) for test in tests},
            needed={test: _needed_or_first(test, degrees, law, p, spread, errors) for test in tests},
            audit_tokens=audit_tokens,
        )
        if best is None or found.needed["chi-square"] < best.needed["chi-square"]:
            best = found
    assert best is not None
    return best


@dataclass(frozen=True)
class Powers:
    """The power against methods by number, each on the rows that show it best; `files` in place of the built-in ones.

    A value that can be sent to another process, which looks the built-in rows up for itself.
    """

    methods: tuple[Method, ...]
    files: tuple[Rows, ...]
    shape: TreeShape
    samples: int
    errors: ErrorRates

    def __call__(self, which: int) -> MethodPower:
        """The power against one method; an exception inside a user's own rule becomes one line that names it."""
        method = self.methods[which]
        named = [DetectableShift(each.name, each.target, each.draft, self.shape) for each in self.files]  # type: ignore[arg-type]
        with own_errors(method):
            return best_witness(method, named or list(WITNESSES), self.samples, self.errors)[1]

    def all(self, executor: Executor | None = None) -> list[MethodPower]:
        """The power against every method, on any `concurrent.futures` executor."""
        return list(in_order(self, range(len(self.methods)), executor))


def best_witness(
    method: Method, witnesses: list[DetectableShift], samples: int, errors: ErrorRates
) -> tuple[DetectableShift, MethodPower]:
    """The rows that show a method best, and the power on them."""
    found = [(witness, method_power(method, witness, samples, errors)) for witness in witnesses]
    return min(found, key=lambda pair: pair[1].needed["chi-square"])


def _needed_or_first(test: str, degrees: int, law: Floats, p: Floats, spread: float, errors: ErrorRates) -> float:
    """Samples needed; where the law has mass on forbidden outcomes, those until one of them has been seen."""
    if not math.isinf(spread):
        return needed(test, degrees, spread, errors)
    return math.log(errors.miss) / math.log1p(-min(float(law[p == 0].sum()), 1 - 1e-15))


def _audit_tokens(method: Method, pair: ModelPair, shape: TreeShape, errors: ErrorRates) -> float:
    law, p = laws(method, pair, shape, 1)
    if (law[p == 0] > 0).any():
        return _needed_or_first("audit", 0, law, p, math.inf, errors)
    emitted = [float(mass) for mass in exact_law(pair.p(()))]
    got = np.zeros(len(emitted))
    got[np.array(emitted) > 0] = law[p > 0]
    draft = pair.in_target_ids(pair.q(()).score, len(emitted)).astype(np.float64)
    return growth(got, emitted, draft, alarm=errors.alarm).needed(errors.miss)
