"""Counts in cells against known probabilities: what was seen, what could have been seen, and what it takes.

Every test comes as three: the test, the smallest discrepancy that it can see with the samples at hand, and the samples
that a given discrepancy needs; the rates of false alarm and of a miss are both arguments. Two of the tests are rigorous
at any sample size (the total-variation radius by McDiarmid's inequality, the e-process by Ville's); chi-square and G
rest on their asymptotic law, with cells merged until each expects enough counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rheo_core import InvalidInput

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LEAST_EXPECTED = 25.0
"""Expected counts below which cells are merged before chi-square and G."""

CONCENTRATIONS = 4.0 ** np.arange(0, 13)
"""Prior strengths c of the e-process's Dirichlet(c p) mixtures: from large deviations to ever smaller ones."""


@dataclass(frozen=True)
class Fit:
    """One look at counts [k] with probabilities [k].

    `log_evidence` is the log of the e-process (inf where a cell of probability 0 was hit); `total_variation` the
    observed one, `radius` what it stays within under the null except with the stated probability; `visible` the total
    variation that chi-square would see here, whatever its direction, except with the stated probability of a miss.
    `p_value` is the larger of chi-square's and G's: where few counts are expected the first is too light in its far
    upper tail and the second too light in its lower one, and the larger keeps to its rate (tested by exact summation).
    """

    samples: int
    cells: int
    chi_square: float
    g: float
    degrees: int
    p_value: float
    total_variation: float
    radius: float
    log_evidence: float
    impossible: int
    visible: float


def fit(counts: ArrayLike, probabilities: ArrayLike, alarm: float, miss: float = 0.01) -> Fit:
    """All the tests on one table; `alarm` is the false-alarm probability of each, `miss` that of overlooking `visible`.

    >>> fit([60, 40], [0.5, 0.5], alarm=0.01).degrees
    1
    """
    seen, p = checked(counts, probabilities)
    samples = int(seen.sum())
    merged_seen, merged_p = merge(seen, p, LEAST_EXPECTED)
    degrees = len(merged_p) - 1
    expected = samples * merged_p
    if degrees and samples:
        chi_square = float(((merged_seen - expected) ** 2 / expected).sum())
        g = float(2 * special.xlogy(merged_seen, merged_seen / expected).sum())
        p_value = float(max(special.chdtrc(degrees, chi_square), special.chdtrc(degrees, g)))
    else:
        chi_square, g, p_value = 0.0, 0.0, 1.0
    impossible = int(seen[p == 0].sum())
    return Fit(
        samples=samples,
        cells=len(p),
        chi_square=chi_square,
        g=g,
        degrees=degrees,
        p_value=0.0 if impossible else p_value,
        total_variation=float(np.abs(seen / max(samples, 1) - p).sum() / 2) if samples else 0.0,
        radius=variation_radius(samples, p, alarm),
        log_evidence=log_evidence(seen, p),
        impossible=impossible,
        visible=visible_variation(samples, degrees, alarm, miss),
    )


def checked(counts: ArrayLike, probabilities: ArrayLike) -> tuple[Counts, Floats]:
    """Counts [k] and probabilities [k] as arrays; raises unless they fit together."""
    seen, p = np.asarray(counts, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 1 or seen.shape != p.shape or not len(p):
        raise InvalidInput("counts", seen.shape, f"one for each of the probabilities, {p.shape}")
    if not (p >= 0).all() or abs(math.fsum(p) - 1) > 1e-9 * len(p) + 1e-9:
        raise InvalidInput("probabilities", math.fsum(p), "non-negative numbers of sum 1")
    if (seen < 0).any():
        raise InvalidInput("counts", int(seen.min()), "non-negative counts")
    return seen, p


def merge(counts: Counts, probabilities: Floats, least: float) -> tuple[Counts, Floats]:
    """Merge cells, smallest first, until each expects at least `least` counts; which ones is a function of n and p."""
    wanted = least / max(int(counts.sum()), 1)
    order = np.argsort(probabilities, kind="stable")
    p = probabilities[order]
    group = np.zeros(len(p), dtype=np.int64)
    mass, number = 0.0, 0
    small = int(np.searchsorted(p, wanted))
    for i in range(small):
        if mass >= wanted:
            number, mass = number + 1, 0.0
        group[i] = number
        mass += p[i]
    short = 0 < small < len(p) and mass < wanted  # the last group of small cells joins the next cell
    group[small:] = np.arange(len(p) - small) + number + (0 if small == 0 or short else 1)
    sums = np.bincount(group, weights=p)
    return np.bincount(group, weights=counts[order]).astype(np.int64), sums / sums.sum()


def variation_radius(samples: int, probabilities: ArrayLike, alarm: float) -> float:
    """r such that n draws from p [k] lie further than r from it in total variation with probability at most `alarm`.

    E TV <= sum sqrt(p (1 - p) / n) / 2, and one draw moves TV by at most 1/n (McDiarmid).
    """
    if samples == 0:
        return 1.0
    p = np.asarray(probabilities, dtype=np.float64)
    mean = float(np.sqrt(p * np.maximum(1 - p, 0) / samples).sum() / 2)
    return min(1.0, mean + math.sqrt(math.log(1 / alarm) / (2 * samples)))


def log_evidence(counts: ArrayLike, probabilities: ArrayLike) -> float:
    """Log of the e-process: the average over c of the likelihood ratio of a Dirichlet(c p) mixture against p.

    A martingale of mean 1 under p however the samples come in, so it exceeds 1/a, ever, with probability at most a.
    """
    seen, p = checked(counts, probabilities)
    if seen[p == 0].any():
        return math.inf
    held = seen > 0
    n, k, q = int(seen.sum()), seen[held], p[held]
    prior = CONCENTRATIONS[:, None] * q
    ratio = (special.gammaln(prior + k) - special.gammaln(prior) - k * np.log(q)).sum(axis=1)
    ratio += special.gammaln(CONCENTRATIONS) - special.gammaln(CONCENTRATIONS + n)
    return float(special.logsumexp(ratio) - math.log(len(CONCENTRATIONS)))


def noncentrality_needed(bar: float, degrees: int, miss: float) -> float:
    """n * sum (P - p)^2 / p at which chi-square with `degrees` stays below `bar` with probability `miss`."""
    return float(special.chndtrinc(bar, degrees, miss))


def visible_variation(samples: int, degrees: int, alarm: float, miss: float) -> float:
    """The total variation that chi-square sees with `samples`, whatever its direction; 1 where it can see none.

    Any law at total variation t from p has divergence at least 4 t^2, so this is the worst case.
    """
    if samples == 0 or degrees < 1:
        return 1.0
    return min(1.0, math.sqrt(noncentrality_needed(special.chdtri(degrees, alarm), degrees, miss) / (4 * samples)))


def samples_needed(variation: float, degrees: int, alarm: float, miss: float) -> int:
    """Samples with which chi-square sees a total variation, whatever its direction, except with probability `miss`."""
    if not 0 < variation <= 1:
        raise InvalidInput("tv", variation, "a number in (0, 1]")
    return math.ceil(noncentrality_needed(special.chdtri(degrees, alarm), degrees, miss) / (4 * variation**2))


def divergence(law: ArrayLike, probabilities: ArrayLike) -> float:
    """Pearson's sum (P - p)^2 / p; inf where P has mass outside p."""
    real, p = np.asarray(law, dtype=np.float64), np.asarray(probabilities, dtype=np.float64)
    if (real[p == 0] > 0).any():
        return math.inf
    held = p > 0
    return float(((real[held] - p[held]) ** 2 / p[held]).sum())
