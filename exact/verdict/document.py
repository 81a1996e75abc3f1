"""The certificate document: inputs and derived figures, signed, for a stranger to re-check with `exact/check.py`.

Everything exact is an "a/b" string (figures with a float beside it). `sha256` is the digest of the document's canonical
form (sorted keys, no spaces, ASCII) with `sha256` itself empty.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from exact.enumeration.rationals import fraction, long_numbers
from exact.enumeration.tree_classes import TreeClass
from exact.runtime.provenance import versions
from exact.verdict.counterexample import Counterexample
from exact.verdict.identity import identities
from rheo_core import Method, TreeMethod

SCHEMA = "rheo-certificate/2"


@long_numbers()
def number(value: Fraction | int) -> dict[str, Any]:
    """Give an exact number in a document: its "a/b" beside a float."""
    return {"exact": str(Fraction(value)), "float": float(value)}


def parts(method: Method, m: int | None) -> dict[str, Any]:
    """Give the method's parts by name, with what each of them is.

    A part that is not wholly known is null, and the checker then takes its work as recorded.
    """
    known = identities(method)
    proxy, verify = (known[name].name if name in known else None for name in ("proxy", "verify"))
    return {
        "name": method.name,
        "claim": method.claim,
        "m": m,
        "construction": method.construction if isinstance(method, TreeMethod) else None,
        "proxy": proxy,
        "verify": verify,
        "identity": {name: each.record() for name, each in known.items()},
    }


@long_numbers()
def classes_digest(found: Iterable[TreeClass]) -> str:
    """SHA-256 of the sorted classes, each as its nodes (parent, slot, kind, token) in rank order and its mass."""
    lines = []
    for each in found:
        tree = each.tree
        nodes = zip(*(column.tolist() for column in (tree.parent, tree.slot, tree.kind, tree.token)), strict=True)
        lines.append(json.dumps([[list(node) for node in nodes], str(fraction(each.probability))]))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def key(tokens: tuple[int, ...]) -> str:
    """Give a sequence of ids as a key: ids joined by commas."""
    return ",".join(str(token) for token in tokens)


def rows(table: Mapping[tuple[int, ...], tuple[Any, ...]]) -> dict[str, Any]:
    """Give a table of rows in exact strings; a row of two distributions becomes an object."""
    return {key(prefix): _row(row) for prefix, row in table.items()}


def _row(row: tuple[Any, ...]) -> Any:
    if isinstance(row[0], tuple):
        return {"score": _row(row[0]), "sampling": _row(row[1])}
    return [str(fraction(value)) for value in row]


def wrong(found: Counterexample | None) -> dict[str, Any] | None:
    """Give the sequence of a counterexample with its two probabilities."""
    if found is None:
        return None
    return {"sequence": list(found.sequence), "got": number(found.got), "right": number(found.right)}


def signed(inputs: Mapping[str, Any], derived: Mapping[str, Any]) -> dict[str, Any]:
    """Give the whole document with its digest."""
    body = {"schema": SCHEMA, "versions": versions(), "inputs": dict(inputs), "derived": dict(derived), "sha256": ""}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return body | {"sha256": hashlib.sha256(canonical.encode()).hexdigest()}
