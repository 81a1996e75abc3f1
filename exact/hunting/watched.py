"""A tree shape that remembers which of its numbers were read.

A rule that never looks at the width does the same at every width, so one width stands for all. What is not read cannot
matter; nothing else is assumed about the rule.
"""

from __future__ import annotations

from typing import Any

from rheo_core import TreeShape

NUMBERS = ("width", "depth", "budget")


class WatchedShape(TreeShape):
    """A `TreeShape` with `read`, the names of the numbers that have been asked for since it was made."""

    def __init__(self, width: int, depth: int, budget: int) -> None:
        super().__init__(width, depth, budget)
        object.__setattr__(self, "read", set())

    def __getattribute__(self, name: str) -> Any:
        if name in NUMBERS:
            vars(self).get("read", set()).add(name)
        return super().__getattribute__(name)

    def is_no_news_after(self, tried: WatchedShape) -> bool:
        """Whether a run at the shape `tried` has settled this one: alike in the depth and in all that was read."""
        mine, theirs = vars(self), vars(tried)
        return all(mine[name] == theirs[name] for name in {*theirs["read"], "depth"})
