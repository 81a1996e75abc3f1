"""The methods of gpu_runner by name: top-k, rheo with any m, rheo-rrsw, the plain chain, the autoregressive baseline.

A name may carry its lead, as in `rheo:0`. Every other tree method of the catalogue works as well, and a user's own rule
as `path.py:name`; parts without a torch twin are run on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from exact.methods import methods as every_method
from exact.methods.load import guessed, load_method
from rheo_core import DEFAULT_SUPPORT, InvalidInput, TreeMethod, TreeShape

AUTOREGRESSIVE = "autoregressive"
BASELINE = "top-k"
"""What differences between methods are to."""
CHAIN = "chain"
DEFAULTS = (AUTOREGRESSIVE, "top-k", "rheo:0", "rheo:1", "rheo:2", "rheo-rrsw")


@dataclass(frozen=True)
class BenchMethod:
    """A method as it is run: label, tree method (None: autoregressive), shape, support of its sampling law."""

    label: str
    tree_method: TreeMethod | None
    shape: TreeShape
    support: int | None = DEFAULT_SUPPORT


def find_method(name: str, shape: TreeShape, lead: int | None = None) -> BenchMethod:
    """The method by name, with the lead that the name or `lead` asks for."""
    if name == AUTOREGRESSIVE:
        return BenchMethod(name, None, shape)
    if name == CHAIN:
        chain = replace(tree_method("rheo"), name=CHAIN, lead=0)
        return BenchMethod(f"{CHAIN} of {shape.depth}", chain, TreeShape(1, shape.depth, shape.depth))
    base, _, given = (name, "", "") if ".py:" in name else name.partition(":")
    if given and not given.isdigit():
        raise InvalidInput("method", name, "NAME or NAME:LEAD, as in rheo:0")
    method = tree_method(base)
    asked = int(given) if given else lead
    if asked is not None and method.lead is not None:
        method = replace(method, lead=asked)
    check_lead(method, shape)
    base = method.name if ".py:" in base else base
    return BenchMethod(base if method.lead is None else f"{base} m={method.leads(shape)}", method, shape)


def check_lead(method: TreeMethod, shape: TreeShape) -> int:
    """The lead m of a method on a shape; raises unless the engine can draft so: level by level, m within the width."""
    if method.construction != "layered":
        raise InvalidInput("method", method.name, "a layered construction")
    lead = method.leads(shape)
    if lead > shape.width:
        raise InvalidInput("lead", lead, f"0 to the width K = {shape.width}")
    return lead


def find_methods(
    names: Sequence[str] | None, shape: TreeShape, lead: int | None = None, support: int | None = DEFAULT_SUPPORT
) -> list[BenchMethod]:
    """The methods by name, each once; without names the baseline and the paper's methods (rheo with m = 0, 1, 2)."""
    methods = [replace(find_method(name, shape, lead), support=support) for name in names or DEFAULTS]
    return list({method.label: method for method in methods}.values())


def tree_method(name: str) -> TreeMethod:
    """The tree method of a name, or of a user's `path.py:name`."""
    if ".py" in name:
        found = load_method(name)
    else:
        known = {key: value for key, value in every_method.items() if isinstance(value, TreeMethod)}
        if name not in known:
            names = [AUTOREGRESSIVE, CHAIN, *known]
            raise InvalidInput("method", guessed(name, names), f"one of {', '.join(names)}; or path.py:name")
        found = known[name]
    if not isinstance(found, TreeMethod):
        raise InvalidInput("method", name, "a tree method or a verify function (a cycle function needs whole rows)")
    return found
