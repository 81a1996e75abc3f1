"""The full mapping of methods: rheo_core's, those of the literature, and those that other packages register.

Each method is a few lines on shared parts and carries the claim that its authors make; `certify` decides. An installed
package adds its own through the entry-point group `rheo.methods` (name -> a Method, a cycle function marked with
`@rheo_core.method`, or a verify function).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType

from exact.methods.block import REFERENCE as BLOCK_REFERENCE
from exact.methods.block import block
from exact.methods.chain import CHAIN
from exact.methods.chain import REFERENCE as CHAIN_REFERENCE
from exact.methods.greedy_hybrid import GREEDY_HYBRID
from exact.methods.greedy_hybrid import REFERENCE as GREEDY_REFERENCE
from exact.methods.k_seq import K_SEQ
from exact.methods.k_seq import REFERENCE as K_SEQ_REFERENCE
from exact.methods.opt_tree import OPT_TREE
from exact.methods.opt_tree import REFERENCE as OPT_TREE_REFERENCE
from exact.methods.optimal_rule import REFERENCE as OPTIMAL_REFERENCE
from exact.methods.optimal_rule import RHEO_OPTIMAL
from exact.methods.ot_optimum import OT_OPTIMUM
from exact.methods.ot_optimum import REFERENCE as OT_REFERENCE
from exact.methods.rejection import REFERENCE as RRS_REFERENCE
from exact.methods.rejection import REFERENCE_WITHOUT, RRS, RRSW
from exact.methods.sample_and_match import REFERENCE as MATCH_REFERENCE
from exact.methods.sample_and_match import SAMPLE_AND_MATCH
from exact.methods.sequoia import REFERENCE as SEQUOIA_REFERENCE
from exact.methods.sequoia import SEQUOIA
from exact.methods.spechub import REFERENCE as SPECHUB_REFERENCE
from exact.methods.spechub import SPECHUB
from exact.methods.static import REFERENCE as STATIC_REFERENCE
from exact.methods.static import STATIC, STATIC_RRSW
from exact.methods.traversal import REFERENCE as TRAVERSAL_REFERENCE
from exact.methods.traversal import TRAVERSAL, TRAVERSAL_TOP_K
from exact.methods.typical import REFERENCE as TYPICAL_REFERENCE
from exact.methods.typical import TYPICAL
from rheo_core import InvalidInput, Method, TreeMethod
from rheo_core import methods as core_methods

GROUP = "rheo.methods"

PAPER = "RheoSampling (the paper)"

_OURS: tuple[tuple[Method, str], ...] = (
    (CHAIN, CHAIN_REFERENCE),
    (RRS, RRS_REFERENCE),
    (RRSW, REFERENCE_WITHOUT),
    (K_SEQ, K_SEQ_REFERENCE),
    (SPECHUB, SPECHUB_REFERENCE),
    (GREEDY_HYBRID, GREEDY_REFERENCE),
    (OT_OPTIMUM, OT_REFERENCE),
    (block, BLOCK_REFERENCE),
    (TRAVERSAL, TRAVERSAL_REFERENCE),
    (TRAVERSAL_TOP_K, f"the rule of {TRAVERSAL_REFERENCE} on siblings that it is not made for"),
    (TYPICAL, TYPICAL_REFERENCE),
    (SAMPLE_AND_MATCH, MATCH_REFERENCE),
    (STATIC, STATIC_REFERENCE),
    (STATIC_RRSW, STATIC_REFERENCE),
    (SEQUOIA, SEQUOIA_REFERENCE),
    (OPT_TREE, OPT_TREE_REFERENCE),
    (RHEO_OPTIMAL, OPTIMAL_REFERENCE),
)


class _Catalogue(Mapping[str, Method]):
    """Built-in methods at once; entry points are only looked up when a name is not built in, or all are listed."""

    def __init__(self, built_in: Mapping[str, Method]) -> None:
        self._built_in = built_in

    def __getitem__(self, name: str) -> Method:
        return self._built_in[name] if name in self._built_in else _installed()[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._built_in
        yield from (name for name in _installed() if name not in self._built_in)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@cache
def _installed() -> Mapping[str, Method]:
    found: dict[str, Method] = {}
    for entry in entry_points(group=GROUP):
        loaded = entry.load()
        if callable(getattr(loaded, "cycle", None)):
            found[entry.name] = loaded
        elif callable(loaded):
            found[entry.name] = TreeMethod(entry.name, None, lead=1, verify=loaded)
        else:
            raise InvalidInput(f"entry point {entry.name}", entry.value, "a Method or a verify function")
    return MappingProxyType(found)


methods: Mapping[str, Method] = _Catalogue({**core_methods, **{rule.name: rule for rule, _ in _OURS}})
"""Every method by name."""

references: Mapping[str, str] = MappingProxyType(
    {**dict.fromkeys(core_methods, PAPER), "top-k": "EAGLE-2/3 (arXiv 2406.16858, 2503.01840)"}
    | {rule.name: reference for rule, reference in _OURS}
)
"""Where each built-in method is defined."""
