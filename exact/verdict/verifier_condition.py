"""The condition on the verifier that the p-free certificate rests on (V1 and V2 of `exact.verdict.every_target`).

Built-in rules carry their reason. A user's rule is a program: it is enumerated at the given rows over candidate sets,
first over all subsets of each pool, then over those that pruning can leave; what holds there is said to hold on these
rows, and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from exact.enumeration.rationals import ZERO
from exact.enumeration.tree_classes import TreeClass
from exact.enumeration.walk import outcomes
from exact.verdict.identity import verifier_name
from rheo_core import SAMPLED
from rheo_core.models import Prefix
from rheo_core.pool import Drafter, Pool
from rheo_core.tree import LEAD
from rheo_core.verification import Verify

Condition = tuple[bool | None, str]
Masses = dict[int, Any]

ALGORITHM_1 = "Algorithm 1 meets V1 and V2 on any tree (Eq. 6 and sequential rejection)"
VANILLA = "vanilla verification emits p and accepts c with p(c) whatever is present"
RRSW = "RRSw meets V2 because every lead is present whenever the sampled node is"
RRSW_FAILS = "RRSw needs every lead present whenever the sampled node is; a class keeps the sampled node without one"


def verifier_condition(verify: Verify, drafter: Drafter, prefix: Prefix, found: Iterable[TreeClass]) -> Condition:
    """Tell whether V1 and V2 hold, and why: True for every p, False refuted, None where only these rows are known."""
    rule = verifier_name(verify)
    if rule == "algorithm_1":
        return True, ALGORITHM_1
    if rule == "vanilla":
        return True, VANILLA
    if rule == "rrsw":
        complete = all(_leads_present(each, drafter, prefix) for each in found)
        return (True, RRSW) if complete else (False, RRSW_FAILS)
    contexts = sorted({context for each in found for context in _contexts(each, prefix)})
    for closed in (False, True):
        failed = next((f for c in contexts if (f := _fails(verify, drafter, c, closed)) is not None), None)
        if failed is None:
            sets = "the candidate sets that pruning can leave" if closed else "all candidate subsets"
            return None, f"V1 and V2 hold on these rows, over {sets}"
        if not closed and not all(_in_order(drafter.pool(context)) for context in contexts):
            break
    return False, failed or ""


def _leads_present(each: TreeClass, drafter: Drafter, prefix: Prefix) -> bool:
    tree = each.tree
    for node in np.flatnonzero(tree.kind == SAMPLED).tolist():
        parent = int(tree.parent[node])
        leads = drafter.pool(prefix + tree.tokens_to(parent)).leads
        if sum(tree.kind[child] == LEAD for child in tree.children(parent)) < len(leads):
            return False
    return True


def _contexts(each: TreeClass, prefix: Prefix) -> set[Prefix]:
    tree = each.tree
    return {prefix + tree.tokens_to(node) for node in (-1, *set(tree.parent.tolist()))}


def _in_order(pool: Pool) -> bool:
    """Tell whether scores fall along the slots whatever Y is, so that pruning leaves the first slots of the pool."""
    return all(
        all(left[3] >= right[3] for left, right in pairwise(slots))
        for slots in (pool.slots(token) for token in _drawable(pool))
    )


def _drawable(pool: Pool) -> list[int | None]:
    return [None] if pool.tail is None else [token for token, weight in enumerate(pool.tail) if weight]


def _subsets(size: int, closed: bool) -> Iterator[tuple[int, ...]]:
    if closed:
        yield from (tuple(range(count)) for count in range(size + 1))
    else:
        for count in range(size + 1):
            yield from combinations(range(size), count)


def _fails(verify: Verify, drafter: Drafter, context: Prefix, closed: bool) -> str | None:
    """What breaks V1 or V2 at one context, or None."""
    pair, pool = drafter.pair, drafter.pool(context)
    p, tail = pair.p(context), drafter.tail(context)
    where = f"at prefix {context}"
    emitted_sum: Masses = {}
    accepted_sum: Masses = {}
    for token in _drawable(pool):
        slots = [(pair.target_id(slot[2]), slot[1]) for slot in pool.slots(token)]
        g: Masses | None = None
        a: Masses = {}
        for subset in _subsets(len(slots), closed):
            kept = [slots[i] for i in subset]
            candidates = [slot[0] for slot in kept]
            sampled = next((i for i, slot in enumerate(kept) if slot[1] == SAMPLED), -1)
            emitted, accepted = _law(verify, p, tail, candidates, sampled, drafter.m)
            if sampled == -1:
                if emitted != _positive(p) or any(accepted.get(c, ZERO) != p[c] for c in candidates):
                    return f"V1 fails {where} with candidates {candidates}"
                continue
            g = emitted if g is None else g
            for c in candidates:
                a.setdefault(c, accepted.get(c, ZERO))
            if g != emitted or any(a[c] != accepted.get(c, ZERO) for c in candidates):
                return f"V2 fails {where}: with sampled token {candidates[sampled]} it depends on what else is present"
        if token is not None and pool.tail is not None and g is not None:
            _add(emitted_sum, g, pool.tail[token])
            _add(accepted_sum, a, pool.tail[token])
    if pool.tail is None:
        return None
    leads = [pair.target_id(lead) for lead in pool.leads]
    if emitted_sum != _positive(p):
        return f"V2 fails {where}: the mean of what is emitted over Y is not p"
    if any(accepted_sum.get(lead, ZERO) != p[lead] for lead in leads):
        return f"V2 fails {where}: the mean acceptance of a lead over Y is not p"
    return None


def _law(
    verify: Verify, p: Any, tail: Any, candidates: Sequence[int], sampled: int, lead: int
) -> tuple[Masses, Masses]:
    """Give the distribution of the emitted token, and the probability that each candidate is accepted."""
    emitted: Masses = {}
    accepted: Masses = {}
    given = tail if sampled != -1 else None
    for (token, child), weight in outcomes(
        lambda chooser: verify(p, given, list(candidates), sampled, lead, chooser, (0, ()))
    ):
        emitted[token] = emitted.get(token, ZERO) + weight
        if child != -1:
            accepted[token] = accepted.get(token, ZERO) + weight
    return emitted, accepted


def _positive(p: Any) -> Masses:
    return {token: mass for token, mass in enumerate(p) if mass}


def _add(total: Masses, masses: Masses, weight: Any) -> None:
    for token, mass in masses.items():
        total[token] = total.get(token, ZERO) + weight * mass
