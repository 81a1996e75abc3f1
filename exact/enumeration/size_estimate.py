"""How much there is to enumerate, told before long work begins.

Unpruned trees are counted along one path of the layered construction. Classes are estimated by Knuth's method: a few
random growths, the numbers of options along each multiplied; the mean is unbiased, so it is a guess of the right size.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from exact.enumeration.walk import ExhaustiveChooser, Walk
from rheo_core import TreeShape
from rheo_core.construction import layered
from rheo_core.growth import Growth, NotGrowable
from rheo_core.models import Prefix
from rheo_core.pool import Drafter

PROBES = 20
ANNOUNCED = 5.0
"""Seconds of expected work from which it is said beforehand."""
SECONDS = {"classes": 1e-4, "unpruned trees": 1.5e-4}
"""Rough cost of one on a current core; only for telling seconds from hours."""


@dataclass(frozen=True)
class Work:
    """About `count` things of a `kind` ("classes" or "unpruned trees") have to be enumerated."""

    kind: str
    count: int

    @property
    def seconds(self) -> float:
        """A rough guess of the time on one core."""
        return self.count * SECONDS[self.kind]

    def __str__(self) -> str:
        return f"about {self.count:,} {self.kind}, some {spelled(self.seconds)}"


def spelled(seconds: float) -> str:
    """A rough time as a person says it.

    >>> spelled(40), spelled(400), spelled(40_000)
    ('40 s', '7 min', 'many hours')
    """
    minutes = seconds / 60
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else "many hours"


def unpruned_outcomes(drafter: Drafter, prefix: Prefix, shape: TreeShape) -> int:
    """The number of unpruned outcomes, from the options along one path multiplied."""
    walk = Walk()
    layered(drafter, prefix, shape, ExhaustiveChooser(walk))
    count = 1
    for branch in walk.path:
        count *= len(branch.options)
    return count


def work(drafter: Drafter, prefix: Prefix, shape: TreeShape, probes: int = PROBES) -> Work:
    """What enumerating the classes will take, by growth where the proxy allows it, else by brute force."""
    rng = random.Random(0)
    try:
        counts = [_probe(drafter, prefix, shape, rng) for _ in range(probes)]
    except NotGrowable:
        return Work("unpruned trees", unpruned_outcomes(drafter, prefix, shape))
    return Work("classes", round(sum(counts) / probes))


def _probe(drafter: Drafter, prefix: Prefix, shape: TreeShape, rng: random.Random) -> int:
    """The options along one random growth, multiplied."""
    growth, count = Growth(drafter, prefix, shape), 1
    while (tail := growth.next_draw()) is not None:
        options = [token for token, weight in enumerate(tail.tolist()) if weight]
        count *= len(options)
        growth.supply(rng.choice(options))
    return count
