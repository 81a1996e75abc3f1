"""`rheo-exact methods`: what can be certified by name, with where it comes from, what it claims and what it needs."""

from __future__ import annotations

from typing import Any

from exact.cli import options
from exact.cli.tables import blank_table, show
from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.methods import methods, references
from rheo_core import Method, TreeMethod


def command(as_json: options.AsJson = False, save: options.Save = None) -> int:
    """List the methods that can be named: source, what each claims, how it drafts.

    Exit code: 0.
    """
    listed = [described(method) for method in methods.values()]
    if not as_json:
        table = blank_table("methods")
        for column in ("method", "claims", "drafts", "source"):
            table.add_column(column)
        for each in listed:
            table.add_row(each["method"], each["claims"] or "-", each["drafts"], each["source"] or "another package")
        show(table)
        options.out.print("Your own: path.py:name (a verification rule, a cycle, or a Method).", highlight=False)
    options.deliver({"command": "methods", "methods": listed}, as_json, save)
    return options.LOSSLESS


def described(method: Method) -> dict[str, Any]:
    """Give a method by name, claim, source and the kind of its drafts."""
    if isinstance(method, TreeMethod):
        drafts = "dynamic tree" if method.lead is None else f"dynamic tree, m = {method.lead} (--lead)"
    elif isinstance(method, FixedTreeMethod):
        drafts = "fixed topology"
    else:
        drafts = "a cycle of its own"
    return {
        "method": method.name,
        "claims": method.claim,
        "drafts": drafts,
        "source": references.get(method.name),
    }
