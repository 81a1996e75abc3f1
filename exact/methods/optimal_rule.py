"""The rule that attains A* on one RheoSampling pool, and loses the target's distribution on the dynamic tree.

In a pool of n survivors the tokens of Top_{n-1} are always present; the one other candidate has a law of its own (x_n
whenever Y falls inside Top_{n-1}). Testing that token against that law accepts as much as any rule can. But the law is
that of a pool of fixed n, and in the tree n depends on Y.
"""

from __future__ import annotations

from collections.abc import Sequence

from rheo_core import Chooser, InvalidInput, TreeMethod
from rheo_core.checks import check_candidates
from rheo_core.laws import Row, residual, total, zeroed
from rheo_core.verification import Place, Verdict, algorithm_1, ratio, sampled_token, sequential_rejection, vanilla

REFERENCE = "derived here: the optimum of section 4's pool as a rule; compare Hu et al. 2025 (arXiv 2502.18779)"


def optimal(
    p: Row, tail: Row | None, candidates: Sequence[int], sampled: int, lead: int, chooser: Chooser, at: Place
) -> Verdict:
    """Test the candidate outside Top_{n-1} first, against its pushed-forward distribution; the rest as point masses."""
    check_candidates(p, candidates)
    if sampled == -1:
        return vanilla(p, tail, candidates, sampled, lead, chooser, at)
    y, _ = sampled_token(tail, candidates, sampled)
    assert tail is not None  # sampled_token has seen to it
    leads, fills = list(candidates[:sampled]), list(candidates[sampled + 1 :])
    unsupported = {token: slot for slot, token in enumerate(fills) if not tail[token] > 0}
    by_tail = sorted(range(len(tail)), key=lambda v: (-tail[v], unsupported.get(v, len(fills)), v))
    by_tail = [v for v in by_tail if v not in leads]
    always = by_tail[: len(fills)]  # with the leads: Top_{n-1}
    other = sampled if y not in always else len(candidates) - 1
    if {*always, candidates[other]} != {y, *fills}:  # no pool ranked by q~ (ties by lower id) has these fills
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)
    pushed = zeroed(tail, always)
    pushed[by_tail[len(fills)]] += total(tail[always])
    r = residual(p, pushed)
    token = candidates[other]
    if chooser.accept(1 if r is None else ratio(p[token], pushed[token]), ("coin", *at, other)):
        return token, other
    rest = [i for i in range(len(candidates)) if i != other]
    if r is None:
        raise InvalidInput("chooser", "a rejection at probability 1", "accept(1) to accept")
    return sequential_rejection(r, candidates, rest, chooser, at)


RHEO_OPTIMAL = TreeMethod("rheo-optimal", "lossy", lead=1, verify=optimal)
