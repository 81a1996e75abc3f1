"""What kind of fault the direction of a bias points to, in words: a hint for whoever looks for it, never a verdict.

The functions overlap (a draft is often flatter than its target), so each is judged by what the others leave of its
bias, as in a regression: to first order, a fault that tilts the rows along one function leaves nothing of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.functions import DIRECTIONS

Floats = NDArray[np.float64]

LEAST = 4.0
"""Standard errors below which a direction is not named."""

NEARLY = 0.6
"""A direction is named beside the strongest one from this part of its standard errors."""

NOISE = 3.0
"""Standard errors up to which a position shows nothing."""

FLAT = "too flat: a temperature too high, or a filter (top-k, top-p) of the rows not applied"
SHARP = "too sharp: a temperature too low, greedy choices, or a filter that the rows do not have"
CHANGING = "now too flat, now too sharp: a temperature that changes, as of memory that was never written"
SENTENCES = {
    ("q / (p + q)", 1): "towards the draft: its tokens are kept too often, or replaced by others than the residual's",
    ("q / (p + q)", -1): "away from the draft: its tokens are rejected too often",
    ("log p", -1): FLAT,
    ("not listed", 1): FLAT,
    ("log p", 1): SHARP,
    ("not listed", -1): SHARP,
    ("one token later", 1): "the next row's token: what should come one token later comes here",
}
NO_DRAFT = "no draft rows were recorded: whether it is towards the draft cannot be told"


@dataclass(frozen=True)
class Position:
    """One position in the cycle (the last one: and beyond): its evidence and the bias of the leading function there.

    Position 0 comes twice where rejections were seen: after one, and else.
    """

    position: int
    tokens: int
    log10_evidence: float
    excess: float
    standard_error: float
    after_rejection: bool = False


def directions(excess: Floats, covariance: Floats, with_draft: bool) -> list[str]:
    """Sentences for the summed excesses [4] of DIRECTIONS, whose covariance under the rows is [4, 4]."""
    varies = covariance.diagonal() > 0
    inverse = np.linalg.pinv(covariance[np.ix_(varies, varies)], rcond=1e-6, hermitian=True)
    scores = np.zeros(len(excess))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = inverse @ excess[varies] / np.sqrt(inverse.diagonal())
    scores[varies] = np.where(np.isfinite(left), left, 0)
    most = float(np.abs(scores).max())
    found = [
        SENTENCES[DIRECTIONS[j], int(np.sign(scores[j]))]
        for j in np.argsort(-np.abs(scores))
        if abs(scores[j]) >= max(LEAST, NEARLY * most) and (DIRECTIONS[j], int(np.sign(scores[j]))) in SENTENCES
    ]
    found = list(dict.fromkeys(found))
    ways = {SENTENCES.get((DIRECTIONS[j], int(np.sign(scores[j])))) for j in np.flatnonzero(np.abs(scores) >= LEAST)}
    if {FLAT, SHARP} <= ways and {FLAT, SHARP} & set(found):
        found = [CHANGING, *(each for each in found if each not in (FLAT, SHARP))]
    return [*found, NO_DRAFT] if found and not with_draft else found


def places(positions: tuple[Position, ...]) -> list[str]:
    """Where alone the leading function is biased; nothing where another position could hide the same bias."""
    if len(positions) < 2:
        return []
    here = max(positions, key=lambda each: abs(_score(each)))
    others = [each for each in positions if each is not here]
    sighted = [each for each in others if abs(here.excess) > (LEAST + NOISE) * each.standard_error]
    if abs(_score(here)) < LEAST or not sighted or any(abs(_score(each)) > NOISE for each in others):
        return []
    if here.after_rejection:
        return ["after a rejection: the first token of the next cycle alone, as if a cache kept what was rejected"]
    return [f"one position: place {here.position} of the cycle alone"]


def _score(position: Position) -> float:
    return position.excess / position.standard_error if position.standard_error > 0 else 0.0
