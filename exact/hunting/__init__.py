"""The hunt for the smallest counterexample: `hunt` and `search`, and the bounded-exhaustive engine `exhaust`."""

from exact.hunting.bounds import Bounds, Leads
from exact.hunting.cases import Case, Level, Model
from exact.hunting.hunter import Search, exhaust, hunt, search
from exact.hunting.sweep import Coverage, sweep

__all__ = ["Bounds", "Case", "Coverage", "Leads", "Level", "Model", "Search", "exhaust", "hunt", "search", "sweep"]
