"""Why each surviving mutant is equivalent: it changes no law and no acceptance of any legal input."""

from __future__ import annotations

_ADDRESS = "an address changes for all who use it alike; addresses name draws and never weigh or merge outcomes"
_TRIED_AGAIN = (
    "a candidate is tried again whose mass in r is 0 by then (Y after its rejection, a lead after its own): its coin "
    "has probability 0, and zeroing it once more changes nothing"
)
_UNUSED = "what is computed there is not used: the last level has no children, and Python returns None anyway"
_SAME_AT_EQUALITY = "both branches give the same number at equality"
_SHIFT = "the heap only compares depths with each other, and all are shifted alike"
_GUARD = "only keeps a rule from changing a row that it was given; no rule of ours does"
_CHECK = "only refuses what is not legal; a legal value passes unchanged"
_COUNTED_AGAIN = "whoever gets this cycle counts its accepted tokens again from the tokens themselves"
_NOT_READ = "q~ is then handed over where no candidate was drawn, and a rule does not read it there"
_DEFAULT = "the default stands for a Y that a proxy rule which ignores Y does not look at"
_HELD = "a proxy that says it ignores Y is held to its word before trees are grown"
_SLOWER = "the rule then counts as looking at Y, and the same classes come from brute force instead of growth"

REASONS: dict[str, str] = {
    "rheo_core/verification.py::algorithm_1: line dropped: rest.remove(sampled)": _TRIED_AGAIN,
    "rheo_core/verification.py::rrsw: sampled + 1 -> sampled - 1": _TRIED_AGAIN,
    "rheo_core/verification.py::sequential_rejection: 0 -> 1": _ADDRESS,
    "rheo_core/verification.py::ratio: p >= q -> p > q": _SAME_AT_EQUALITY,
    "rheo_core/construction.py::tail_address: 0 -> 1": _ADDRESS,
    "rheo_core/construction.py::tail_address: 0 -> 1 (2)": _ADDRESS,
    "rheo_core/construction.py::_expanded: depth < shape.depth -> depth <= shape.depth": _UNUSED,
    "rheo_core/growth.py::Growth.next_draw: line dropped: return None": _UNUSED,
    "rheo_core/growth.py::Growth._push: self.nodes.depth_of(parent) + 1 -> self.nodes.depth_of(parent) - 1": _SHIFT,
    "rheo_core/growth.py::Growth._push: 1 -> 2": _SHIFT,
    "rheo_core/pool.py::Pool.__init__: line dropped: if self.tail is not None: self.tail.flags.writeable = False": _GUARD,  # noqa: E501
    "rheo_core/pool.py::Pool.__init__: line dropped: self.tail.flags.writeable = False": _GUARD,
    "rheo_core/pool.py::Pool.__init__: best <= 1 -> best < 1": _SAME_AT_EQUALITY,
    "rheo_core/pool.py::Pool.__init__: False -> True": _GUARD,
    "rheo_core/pool.py::Pool.proxy_score: -1 -> +1": _DEFAULT,
    "rheo_core/pool.py::Pool.proxy_score: 1 -> 2": _DEFAULT,
    "rheo_core/tree.py::module: 2 -> 3": "FILL is a name for a kind of node; nothing but SAMPLED is ever asked for",
    "rheo_core/laws.py::tail_law: line dropped: lead = list(lead)": "the list only serves the text of the error",
    "rheo_core/methods.py::TreeMethod.__post_init__: line dropped: if self.lead is not None: object.__setattr__(self, 'lead', c ... nt('lead', self.lead, 0))": _CHECK,  # noqa: E501
    "rheo_core/methods.py::TreeMethod.__post_init__: line dropped: object.__setattr__(self, 'lead', check_count('lead', self.lead, 0))": _CHECK,  # noqa: E501
    "rheo_core/methods.py::TreeMethod.cycle: line dropped: prefix = check_prefix(prefix, pair)": _CHECK,
    "rheo_core/methods.py::method.mark: name or getattr(body, '__name__', 'method') -> name and getattr(body, '__name__', 'method')": "a name, not a law",  # noqa: E501
    "rheo_core/verification.py::verify_node: 1 -> 2 (2)": _NOT_READ,
    "rheo_core/verification.py::verify_node: 0 -> 1": _ADDRESS,
    "rheo_core/proxies.py::module: True -> False": _HELD,
    "rheo_core/proxies.py::Constant: line dropped: uses_token = False": _SLOWER,
    "rheo_core/proxies.py::Constant: False -> True": _SLOWER,
}
"""Mutant key -> reason."""


def reason(key: str) -> str | None:
    """Why a mutant may survive; None where nothing is on record."""
    return REASONS.get(key)
