"""Acceptance hunts: the rows on which one method accepts most more than another.

Every pair of rows alike at every prefix is tried within bounds, smallest first, so the rows reported are the smallest
among those with the largest gap. Acceptance is the exact acceptance length of one cycle (the target's token included);
in trees of one level its gaps are those of the acceptance probability.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from exact import executors
from exact.arithmetic import fraction
from exact.cycle_law import acceptance_by_depth
from exact.hunting.bank import BankPair
from exact.hunting.bounds import Bounds, Leads, blocks, in_order
from exact.hunting.cases import Case, Model
from exact.hunting.subject import Subject, trier_of
from exact.hunting.sweep import Progress
from exact.hunting.tries import Block, Trier, with_lead
from exact.outcomes import TooManyOutcomes
from exact.plugins import label
from rheo_core import InvalidInput, Method, TreeMethod
from rheo_core.errors import check_count
from rheo_core.rates import optimal_rate

OPTIMUM = "optimum"
"""In place of the second method: A*, the most that any lossless rule can accept from the first one's pool."""

BOUNDS = (Bounds(2, 1, 3, 3, 8, 0), Bounds(3, 1, 3, 3, 6, 0), Bounds(4, 1, 4, 4, 4, 0))
"""Searched at depth 1; deeper trees are tried within the same bounds, with a budget of twice the width."""


@dataclass(frozen=True)
class Gap:
    """Where the first method's acceptance length exceeds the second's by most: the smallest such case, and by how much.

    `lead` and `second_lead` are the numbers of leads of the two (None: no such number). `cases` were tried; `finished`
    says that these were all within the bounds.
    """

    first: str
    second: str
    case: Case
    second_lead: int | None
    acceptance: Fraction
    second_acceptance: Fraction
    cases: int
    finished: bool

    @property
    def value(self) -> Fraction:
        """The gap."""
        return self.acceptance - self.second_acceptance


def widest_gap(
    first: Method | str,
    second: Method | str,
    *,
    seconds: float = 60,
    max_vocabulary: int = 4,
    depth: int = 1,
    lead: int | None = None,
    second_lead: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Gap | None:
    """The largest gap by which `first` accepts more than `second`, with its smallest rows; None where it never does.

    `second` may be "optimum": A* of the first one's pool, at depth 1. `lead` and `second_lead` replace the methods' own
    numbers of leads. Raises `InvalidInput` on names, numbers or leads that do not fit.

    >>> gap = widest_gap("rheo", "top-k", max_vocabulary=2)
    >>> gap.value, gap.case.shape
    (Fraction(1, 1), TreeShape(width=1, depth=1, budget=1))
    """
    one = Subject.of(first)
    other = None if second == OPTIMUM else Subject.of(second)
    leads = _lead_of(one, lead), None if other is None else _lead_of(other, second_lead)
    check_count("depth", depth, 1)
    if other is None and (depth > 1 or not isinstance(one.method, TreeMethod) or one.method.lead is None):
        raise InvalidInput("second", OPTIMUM, f"a tree method with leads at depth 1 ({one.method.name}, depth {depth})")
    bounds = [
        replace(each, depth=depth, budget=each.budget if depth == 1 else 2 * each.width)
        for each in BOUNDS
        if each.vocabulary <= check_count("max_vocabulary", max_vocabulary, 2)
    ]
    both_trees = isinstance(one.method, TreeMethod) and (other is None or isinstance(other.method, TreeMethod))
    levels = in_order(bounds, Leads(leads[0] is not None, leads[0], both_trees))
    deadline = time.time() + seconds
    packed = one.packed, None if other is None else other.packed
    triers = Trier(one.method), None if other is None else Trier(other.method)
    run = partial(_local, triers, leads, deadline) if executor is None else partial(_job, packed, leads, deadline)
    total = sum(len(level.laws) for level in levels)
    best: tuple[Case, Fraction, Fraction] | None = None
    cases, finished = 0, True
    results = executors.in_order(run, blocks(levels), executor)
    for number, (found, tried) in enumerate(results):
        cases += tried
        if progress is not None:
            progress(f"{cases} cases", number / total)
        if found is not None and (best is None or found[1] - found[2] > best[1] - best[2]):
            best = found
        if time.time() > deadline:
            finished = False
            results.close()  # type: ignore[attr-defined]
            break
    if best is None:
        return None
    names = (
        label(with_lead(one.method, leads[0])),
        OPTIMUM if other is None else label(with_lead(other.method, leads[1])),
    )
    return Gap(*names, best[0], leads[1], best[1], best[2], cases, finished)


def _lead_of(subject: Subject, given: int | None) -> int | None:
    if given is not None and not subject.has_leads:
        raise InvalidInput("lead", given, f"no lead with {subject.method.name}, which has no lead to set")
    return given if given is not None or not subject.has_leads else subject.method.lead  # type: ignore[attr-defined]


Found = tuple[tuple[Case, Fraction, Fraction] | None, int]


def _job(
    packed: tuple[str | bytes, str | bytes | None], leads: Sequence[int | None], deadline: float, block: Block
) -> Found:
    triers = trier_of(packed[0]), None if packed[1] is None else trier_of(packed[1])
    return _local(triers, leads, deadline, block)


def _local(triers: tuple[Trier, Trier | None], leads: Sequence[int | None], deadline: float, block: Block) -> Found:
    """The widest gap among the cases of one block, the smallest of equals, and the number of cases tried."""
    trier, other = triers
    level = block.level
    q = level.laws[block.first]
    best: tuple[Case, Fraction, Fraction] | None = None
    tried = 0
    for p in level.laws:
        case = Case(Model(p), Model(q), level.shape, level.lead)
        if case.denominator < level.denominator:
            continue
        if time.time() > deadline:
            break
        tried += 1
        mine = acceptance_of(trier, case, leads[0])
        theirs = _optimum(case) if other is None else acceptance_of(other, case, leads[1])
        if mine is not None and theirs is not None and mine - theirs > (best[1] - best[2] if best else 0):
            best = case, mine, theirs
    return best, tried


def acceptance_of(trier: Trier, case: Case, lead: int | None) -> Fraction | None:
    """The exact acceptance length; None where the method refuses the case or it is too large to enumerate."""
    pair: BankPair = trier.pair_of(case)
    try:
        emitted = trier.law(with_lead(trier.method, lead), pair, case.shape)
    except (InvalidInput, TooManyOutcomes):
        return None
    return sum(acceptance_by_depth(emitted, case.shape.depth), Fraction(0))


def _optimum(case: Case) -> Fraction:
    pool = min(case.shape.budget, case.shape.width, case.vocabulary)
    return 1 + fraction(optimal_rate(case.target.default, case.draft.default, case.lead or 0, pool))
