"""Acceptance hunts: the rows on which one method accepts most more, or most less, than another.

Every pair of rows alike at every prefix is tried within bounds, smallest first, so the rows reported are the smallest
among those with the largest gap. Acceptance is the exact acceptance length of one cycle (the target's token included);
in trees of one level its gaps are those of the acceptance probability.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

from exact.enumeration.cycle_law import acceptance_by_depth
from exact.enumeration.rationals import fraction
from exact.enumeration.walk import TooManyOutcomes
from exact.methods.load import label
from exact.runtime import executors
from exact.runtime.journal import Journal, subject
from exact.search.case_evaluation import CaseEvaluator, with_lead
from exact.search.cases import Bounds, Case, CaseBlock, Leads, Model, SearchLevel, blocks, in_order
from exact.search.exhaustive import Progress, Subject, evaluator_of
from exact.search.row_table import IndexedPair
from rheo_core import InvalidInput, Method, TreeMethod, TreeShape
from rheo_core.checks import check_count
from rheo_core.rates import optimal_rate

OPTIMUM = "optimum"
"""In place of the second method: A*, the most that any lossless rule can accept from the first one's pool."""

BOUNDS = (Bounds(2, 1, 3, 3, 8, 0), Bounds(3, 1, 3, 3, 6, 0), Bounds(4, 1, 4, 4, 4, 0))
"""Searched at depth 1; deeper trees are tried within the same bounds, with a budget of twice the width."""


@dataclass(frozen=True)
class Gap:
    """A case, and the acceptance lengths of the two methods on it."""

    case: Case
    first: Fraction
    second: Fraction

    @property
    def value(self) -> Fraction:
        """By how much the first accepts more (less where it is negative)."""
        return self.first - self.second


@dataclass
class Gaps:
    """Where the first method accepts most `more` than the second, and most `less`; None where it never does.

    Each is the smallest case with the widest gap. `cases` were tried; `finished` says that these are all within bounds.
    """

    first: str
    second: str
    more: Gap | None = None
    less: Gap | None = None
    cases: int = 0
    finished: bool = True

    def take(self, gap: Gap) -> None:
        """Keep a gap that is wider than those before it."""
        if gap.value > (self.more.value if self.more else 0):
            self.more = gap
        if gap.value < (self.less.value if self.less else 0):
            self.less = gap


KINDS = (CaseBlock, SearchLevel, TreeShape, Gaps, Gap, Case, Model)
"""What the journal of an acceptance hunt holds."""


def widest_gaps(
    first: Method | str,
    second: Method | str,
    *,
    seconds: float = 60,
    max_vocabulary: int = 4,
    depth: int = 1,
    lead: int | None = None,
    second_lead: int | None = None,
    bounds: Sequence[Bounds] = BOUNDS,
    executor: Executor | None = None,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Gaps:
    """Give the widest gaps between the acceptance of two methods, both ways, each with its smallest rows.

    `second` may be "optimum": A* of the first one's pool, at depth 1. `lead` and `second_lead` replace the methods' own
    numbers of leads; `resume` is the file of a journal, as with `search`. Raises `InvalidInput` on names, numbers or
    leads that do not fit.

    >>> gaps = widest_gaps("rheo", "top-k", max_vocabulary=2, lead=0)
    >>> str(gaps.more.value), [str(mass) for mass in gaps.more.case.draft.default], gaps.more.case.shape
    ('1/2', ['1/2', '1/2'], TreeShape(width=1, depth=1, budget=1))
    """
    one = Subject.of(first)
    other = None if second == OPTIMUM else Subject.of(second)
    leads = _lead_of(one, lead), None if other is None else _lead_of(other, second_lead)
    check_count("depth", depth, 1)
    check_count("max_vocabulary", max_vocabulary, 2)
    if other is None and (depth > 1 or not isinstance(one.method, TreeMethod) or leads[0] is None):
        raise InvalidInput("second", OPTIMUM, f"a tree method with leads at depth 1 ({one.method.name}, depth {depth})")
    both_trees = isinstance(one.method, TreeMethod) and (other is None or isinstance(other.method, TreeMethod))
    within = [
        replace(each, depth=depth, budget=each.budget if depth == 1 else 2 * each.width)
        for each in bounds
        if each.vocabulary <= max_vocabulary
    ]
    levels = in_order(within, Leads(leads[0] is not None, leads[0], both_trees))
    deadline = time.time() + seconds
    subjects = (one,) if other is None else (one, other)
    run: Callable[[CaseBlock], Gaps]
    if executor is None:
        run = partial(_widest, [each.evaluator for each in subjects], leads, deadline)
    else:
        run = partial(_job, [each.packed for each in subjects], leads, deadline)
    digest = "" if resume is None else subject(*(each.digest for each in subjects), leads)
    journal = Journal(resume, digest, KINDS)
    total = sum(len(level.laws) for level in levels)
    against = OPTIMUM if other is None else label(with_lead(other.method, leads[1]))
    gaps = Gaps(label(with_lead(one.method, leads[0])), against)
    todo = list(blocks(levels))
    fresh = executors.in_order(run, [block for block in todo if block not in journal.known], executor)
    with closing(fresh):
        for number, block in enumerate(todo):
            found = journal.known[block] if block in journal.known else next(fresh)
            gaps.cases += found.cases
            for gap in (found.more, found.less):
                if gap is not None:
                    gaps.take(gap)
            if progress is not None:
                progress(f"{gaps.cases} cases", number / total)
            if not found.finished:
                gaps.finished = False
                break
            if block not in journal.known:
                journal.note(block, found)
    return gaps


def _lead_of(subject: Subject, given: int | None) -> int | None:
    if given is not None and not subject.has_leads:
        raise InvalidInput("lead", given, f"no lead with {subject.method.name}, which has no lead to set")
    return given if given is not None else getattr(subject.method, "lead", None)


def _job(packed: Sequence[str | bytes], leads: Sequence[int | None], deadline: float, block: CaseBlock) -> Gaps:
    return _widest([evaluator_of(each) for each in packed], leads, deadline, block)


def _widest(
    evaluators: Sequence[CaseEvaluator], leads: Sequence[int | None], deadline: float, block: CaseBlock
) -> Gaps:
    """Give the widest gaps among the cases of one block: of the first evaluator to the second, or to the optimum."""
    evaluator, *others = evaluators
    level = block.level
    gaps = Gaps("", "")
    for p in level.laws:
        case = Case(Model(p), Model(level.laws[block.first]), level.shape, level.lead)
        if case.denominator < level.denominator:
            continue
        if time.time() > deadline:
            gaps.finished = False
            break
        gaps.cases += 1
        first = acceptance_of(evaluator, case, leads[0])
        second = acceptance_of(others[0], case, leads[1]) if others else _optimum(case)
        if first is not None and second is not None:
            gaps.take(Gap(case, first, second))
    return gaps


def acceptance_of(evaluator: CaseEvaluator, case: Case, lead: int | None) -> Fraction | None:
    """Give the exact acceptance length; None where the method refuses the case or it is too large to enumerate."""
    pair: IndexedPair = evaluator.pair_of(case)
    try:
        emitted = evaluator.law(with_lead(evaluator.method, lead), pair, case.shape)
    except (InvalidInput, TooManyOutcomes):
        return None
    return sum(acceptance_by_depth(emitted, case.shape.depth), Fraction(0))


def _optimum(case: Case) -> Fraction:
    pool = min(case.shape.budget, case.shape.width, case.vocabulary)
    return 1 + fraction(optimal_rate(case.target.default, case.draft.default, case.lead or 0, pool))
