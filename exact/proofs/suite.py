"""Every proof, in the order of the paper: one pool, every V, the loop, verifiers, RRSw, and survival in the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor

from exact.proofs import dominance, every_vocabulary, loop, pools, survival, verifiers
from exact.proofs.claims import POOL_CLAIMS
from exact.proofs.proof import Control, CounterModel, Proof
from exact.runtime.journal import Journal, resumed

KINDS = (Proof, CounterModel, Control, pools.StatementOutcome)
"""What the journal holds."""

EVERY_V = "every V: "

BEFORE = ("loop", *(EVERY_V + claim.name for claim in POOL_CLAIMS))
AFTER = ("verifiers", "dominance", "Lemma 4", "survival at depth 1")
DEEP = ("verifiers", "dominance", "Lemma 4", "survival at depth 1, more tokens")

STAGES: Mapping[str, Callable[[], list[Proof]]] = {
    "loop": loop.prove_loop,
    "verifiers": verifiers.prove_verifiers,
    "dominance": dominance.prove_dominance,
    "Lemma 4": lambda: [survival.prove_lemma_4()],
    "survival at depth 1": survival.depth_one,
    "survival at depth 1, more tokens": lambda: survival.depth_one(survival.DEEP_VOCABULARY),
}
"""Proofs that are one job each; those by claim and by shape are named after them."""


def prove(
    limit: int = pools.MAX_VOCABULARY,
    deep: bool = False,
    executor: Executor | None = None,
    tick: Callable[[], None] = lambda: None,
    journal: Journal | None = None,
) -> Iterator[Proof]:
    """Yield each line of the report as it is done; `deep` takes more tokens for the survival of the sampled slot.

    Jobs go to any `executor`; finished ones are noted in the `journal` and found there again.
    """
    yield from _stages(BEFORE, executor, journal)
    yield from pools.prove_pools(limit=limit, executor=executor, tick=tick, journal=journal)
    yield from _stages(DEEP if deep else AFTER, executor, journal)


def _stages(names: tuple[str, ...], executor: Executor | None, journal: Journal | None) -> Iterator[Proof]:
    for found in resumed(stage, {name: name for name in names}, executor, journal):
        yield from found


def stage(name: str) -> list[Proof]:
    """Give the proofs of one job."""
    if name.startswith(EVERY_V):
        return [every_vocabulary.prove_every(claim) for claim in POOL_CLAIMS if EVERY_V + claim.name == name]
    return STAGES[name]()
