"""Making a lossy case smaller, step by step, in the order of `Case.size`.

Each step proposes cases that are smaller; the first that is still lossy is taken, and the steps start over. The result
is a local minimum; whether something smaller exists is the exhaustive engine's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from exact.search.cases import Case, Law, Leads, Model, denominator_of, laws, prefixes, smallest_law
from rheo_core import TreeShape
from rheo_core.models import Prefix

MOST_LAWS = 200
"""Denominators with more laws than this are not tried for a single row."""


Lossy = Callable[[Case], Case | None]
"""A lossy case in place of the one given, mostly itself; None where there is none."""


def shrink(case: Case, lossy: Lossy, leads: Leads, may_go_on: Callable[[], bool]) -> Case:
    """Give the smallest case that single steps lead to from a lossy `case`; stops early when `may_go_on` says no."""

    def better(proposals: Iterable[Case], than: Case) -> Case | None:
        for proposal in proposals:
            if not may_go_on():
                return None
            if proposal.lead in leads.at(proposal.shape.width):
                settled = _settled(proposal)
                variant = lossy(settled) if settled.size < than.size else None
                if variant is not None and (smaller := _settled(variant)).size < than.size:
                    return smaller
        return None

    case = _settled(case)
    while True:
        before = case
        for steps in (_fewer_tokens, _smaller_shapes, _alike, _smaller_denominators):
            while (smaller := better(steps(case), case)) is not None:
                case = smaller
        for side in ("draft", "target"):
            for place in list(getattr(case, side).listed) or [None]:
                case = better(_smaller_rows(case, side, place), case) or case
        if case.size == before.size:
            return case


def _settled(case: Case) -> Case:
    """The same case with every row listed that can be read, the smallest law elsewhere; one row where all are alike."""
    draft, target = case.rows
    if not case.dependent:
        return replace(case, target=Model(target[0]), draft=Model(draft[0]))
    v, depth = case.vocabulary, case.shape.depth
    default = smallest_law(v)
    return replace(
        case,
        target=Model(default, dict(zip(prefixes(v, depth), target, strict=True))),
        draft=Model(default, dict(zip(prefixes(v, depth - 1), draft, strict=True))),
    )


def _fewer_tokens(case: Case) -> Iterator[Case]:
    """Yield one token joined to another."""
    v = case.vocabulary
    if v == 2:
        return
    for gone in range(v):
        for into in range(v):
            if into != gone:
                yield replace(
                    case, target=_joined(case.target, gone, into, v), draft=_joined(case.draft, gone, into, v)
                )


def _joined(model: Model, gone: int, into: int, v: int) -> Model:
    kept = [token for token in range(v) if token != gone]

    def law(row: Law) -> Law:
        return tuple(row[token] + (row[gone] if token == into else 0) for token in kept)

    listed: dict[Prefix, Law] = {}
    for prefix, row in model.listed.items():
        if gone not in prefix:
            listed[tuple(kept.index(token) for token in prefix)] = law(row)
    return Model(law(model.default), listed)


def _smaller_shapes(case: Case) -> Iterator[Case]:
    shape, lead = case.shape, case.lead
    for depth in range(1, shape.depth):
        yield replace(case, shape=TreeShape(shape.width, depth, shape.budget))
    for budget in range(1, shape.budget):
        yield replace(case, shape=TreeShape(shape.width, shape.depth, budget))
    for width in range(1, shape.width):
        fitting = None if lead is None else min(lead, width)
        yield replace(case, shape=TreeShape(width, shape.depth, shape.budget), lead=fitting)
    for fewer in range(lead or 0):
        yield replace(case, lead=fewer)


def _alike(case: Case) -> Iterator[Case]:
    """Yield one row for all prefixes: of both models, then of one."""
    if not case.dependent:
        return
    drafts, targets = (set(rows) for rows in case.rows)
    yield from (replace(case, target=Model(p), draft=Model(q)) for q in sorted(drafts) for p in sorted(targets))
    yield from (replace(case, draft=Model(q)) for q in sorted(drafts))
    yield from (replace(case, target=Model(p)) for p in sorted(targets))


def _smaller_denominators(case: Case) -> Iterator[Case]:
    """Yield every row replaced by the nearest one with a smaller denominator."""
    for largest in range(1, case.denominator):
        yield replace(case, target=_rounded(case.target, largest), draft=_rounded(case.draft, largest))


def _rounded(model: Model, largest: int) -> Model:
    return Model(
        nearest(model.default, largest), {prefix: nearest(row, largest) for prefix, row in model.listed.items()}
    )


def nearest(law: Law, largest: int) -> Law:
    """Give the distribution nearest to `law` (total variation, then order) whose denominator is at most `largest`."""
    if denominator_of(law) <= largest:
        return law
    candidates = laws(len(law), min(largest, _affordable(len(law))))

    def distance(other: Law) -> Fraction:
        return sum((abs(a - b) for a, b in zip(law, other, strict=True)), Fraction(0))

    return min(candidates, key=lambda other: (distance(other), other))


def _affordable(vocabulary: int) -> int:
    return next(n for n in range(1, 100) if len(laws(vocabulary, n + 1)) > MOST_LAWS)


def _smaller_rows(case: Case, side: str, place: Prefix | None) -> Iterator[Case]:
    """Yield one row (None: the row of all prefixes) replaced by a smaller law, or by one of smaller denominator."""
    model: Model = getattr(case, side)
    row = model.default if place is None else model(place)
    for law in laws(case.vocabulary, min(case.denominator, _affordable(case.vocabulary))):
        if law < row or denominator_of(law) < denominator_of(row):
            changed = Model(law) if place is None else Model(model.default, {**model.listed, place: law})
            yield replace(case, **{side: changed})  # type: ignore[arg-type]
