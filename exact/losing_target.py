"""Search for a target on which a method loses, at a given q.

The classes of draft trees do not depend on p, so each trial costs only the verifier's laws. Tried in turn: the given
rows, p = q, the uniform law, one token, two tokens, and then prefix-dependent rows of small denominators, the same each
time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import combinations

from exact.arithmetic import Fast, exact_row
from exact.classes import TreeClass
from exact.cycle_law import Comparison, NodeLaws, compare, emitted_law
from rheo_core import TreeMethod, TreeShape
from rheo_core.laws import Row
from rheo_core.rows import Pair, Prefix

TRIALS = 12
DENOMINATOR = 6

Target = Callable[[Prefix], Row]


def losing_target(
    method: TreeMethod, pair: Pair, prefix: Prefix, shape: TreeShape, found: list[TreeClass], length: int
) -> tuple[Pair, Comparison] | None:
    """A pair with the same draft on which the method is lossy, and the comparison that shows it; None without one."""
    for target in targets(pair, prefix):
        trial = Pair(target, pair.q, pair.ids)
        laws = NodeLaws(method.drafter(trial, shape), method.verify)
        compared = compare(emitted_law(found, laws, prefix), trial, prefix, length)
        if compared.wrong is not None:
            return trial, compared
    return None


def targets(pair: Pair, prefix: Prefix) -> Iterator[Target]:
    """The targets that are tried, in order."""
    size = len(pair.p(prefix))
    yield pair.p
    yield lambda context: pair.in_target_ids(pair.q(context).score, size)
    yield _alike([Fast(1, size)] * size)
    for token in range(size):
        yield _alike([Fast(v == token) for v in range(size)])
    for two in combinations(range(size), 2):
        yield _alike([Fast(v in two) / 2 for v in range(size)])
    for seed in range(TRIALS):
        yield _random_rows(seed, size)


def _alike(row: list[object]) -> Target:
    law = exact_row(row)
    return lambda context: law


def _random_rows(seed: int, size: int) -> Target:
    def row(context: Prefix) -> Row:
        rng = random.Random(f"{seed}:{context}")
        counts = [0] * size
        for _ in range(DENOMINATOR):
            counts[rng.randrange(size)] += 1
        return exact_row([Fast(count, DENOMINATOR) for count in counts])

    return row
