"""The hunt for the smallest counterexample: `hunt` and `search`, and the bounded-exhaustive engine `exhaust`."""

from exact.search.cases import Bounds, Case, Leads, Model, SearchLevel
from exact.search.exhaustive import Coverage, sweep
from exact.search.hunt import Search, exhaust, hunt, search

__all__ = [
    "Bounds",
    "Case",
    "Coverage",
    "Leads",
    "Model",
    "Search",
    "SearchLevel",
    "exhaust",
    "hunt",
    "search",
    "sweep",
]
