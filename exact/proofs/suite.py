"""Every proof, in the order of the paper: one pool, every V, the loop, verifiers, RRSw, and survival in the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from exact.proofs import dominance, every, loop, pools, survival, verifiers
from exact.proofs.claims import POOL_CLAIMS
from exact.proofs.growth import prove_growth
from exact.proofs.proof import Proof

GROWTH_SECONDS = 240


def prove(
    limit: int = pools.MAX_VOCABULARY,
    deep: bool = False,
    executor: Executor | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Iterator[Proof]:
    """Each line of the report as it is done; `deep` adds the survival of the sampled slot below depth 1."""
    yield from loop.prove_loop()
    for claim in POOL_CLAIMS:
        yield every.prove_every(claim)
    yield from pools.prove_pools(limit=limit, executor=executor, tick=tick)
    yield from verifiers.prove_verifiers()
    yield from dominance.prove_dominance()
    yield survival.prove_lemma_4()
    yield from survival.depth_one()
    if deep:
        yield from survival.deeper()
        yield prove_growth(3, 2, 2, zeros=False, seconds=GROWTH_SECONDS)
