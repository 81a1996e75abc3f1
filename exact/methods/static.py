"""Fixed tree topologies, as Medusa and EAGLE-1 use them: a list of slot paths, filled with top-K or drawn siblings.

The default gives slot i of a parent about 1/i of the children of slot 1, close to the published trees' outline.
"""

from __future__ import annotations

from collections.abc import Iterable

from exact.enumeration.fixed_trees import FixedTreeMethod, Topology, Widths
from exact.methods.parts import as_point_masses, of_paths, top, widths_of
from exact.methods.rejection import RRSW
from rheo_core import TreeShape
from rheo_core.tree import SlotPath

REFERENCE = "Cai et al. 2024, Medusa (arXiv 2401.10774); Li et al. 2024, EAGLE (arXiv 2401.15077)"


def harmonic(shape: TreeShape) -> Widths:
    """The R paths of least product of slot numbers (from 1) among those of product at most K, shorter ones first."""
    found: list[tuple[int, SlotPath]] = []
    level: list[tuple[int, SlotPath]] = [(1, ())]
    for _ in range(shape.depth):
        level = [
            (product * slot, (*path, slot - 1))
            for product, path in level
            for slot in range(1, shape.width // product + 1)
        ]
        found += level
    found.sort(key=lambda entry: (entry[0], len(entry[1]), entry[1]))
    return widths_of(path for _, path in found[: shape.budget])


def static(topology: Topology, name: str = "static") -> FixedTreeMethod:
    """Top-K siblings on a fixed topology."""
    return FixedTreeMethod(name, "lossless", topology, top, as_point_masses)


def static_paths(paths: Iterable[SlotPath], name: str = "static") -> FixedTreeMethod:
    """Top-K siblings on the topology given as a list of slot paths."""
    return static(of_paths(paths), name)


STATIC = static(harmonic)
STATIC_RRSW = FixedTreeMethod("static-rrsw", "lossless", harmonic, RRSW.draft, RRSW.verify)
