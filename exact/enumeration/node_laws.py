"""What a verification rule emits at each node of a tree, and what that makes of a whole tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exact.enumeration.rationals import ONE, ZERO
from exact.enumeration.tree_classes import TreeClass
from exact.enumeration.whole_rows import Keep, RowStore, WholeRow, add_row, row_outcomes, spread
from rheo_core.chooser import Chooser
from rheo_core.models import Prefix
from rheo_core.pool import Drafter
from rheo_core.tree import ROOT, SAMPLED, SlotPath, Tree
from rheo_core.verification import Verify, verify_node

Tokens = tuple[int, ...]
Emitted = Mapping[Tokens, Any]
"""A distribution of sequences: a dictionary, or where it is long a `Spread`."""

Ends = list[tuple[Any, WholeRow]]
"""(mass, row) of the runs whose last token is drawn from a whole row."""


class VerifierCache:
    """The law of (token, child) of a verification rule at each parent, enumerated once for each set of candidates.

    A rule is handed the slot path of the parent as well, so that belongs to what is remembered.
    """

    def __init__(self, drafter: Drafter, verify: Verify, cycle: int = 0) -> None:
        self.drafter = drafter
        self.verify = verify
        self.cycle = cycle
        self._rows = RowStore()
        self._known: dict[Any, tuple[dict[tuple[int, int], Any], Ends]] = {}

    def at(
        self, tree: Tree, node: int, path: SlotPath, children: list[int], context: Prefix
    ) -> tuple[dict[tuple[int, int], Any], Ends]:
        """The distribution of (token, index of the accepted candidate or -1) at one node, and that in whole rows."""
        candidates = tuple(int(tree.token[child]) for child in children)
        sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
        key = (context, path, candidates, sampled)
        if key not in self._known:

            def program(chooser: Chooser, keep: Keep) -> tuple[int, int]:
                verify = keeping(self.verify, keep)
                return verify_node(tree, node, children, self.drafter, context, verify, chooser, self.cycle)

            masses: dict[tuple[int, int], Any] = {}
            ends: dict[None, Ends] = {}
            found = row_outcomes(program, lambda verdict, token: (token, verdict[1]), store=self._rows)
            for verdict, row, weight in found:
                if row is None:
                    masses[verdict] = masses.get(verdict, ZERO) + weight
                else:
                    add_row(ends, None, weight, row)
            self._known[key] = masses, ends.get(None, [])
        return self._known[key]


def keeping(verify: Any, keep: Keep) -> Any:
    """A rule whose emitted token stands for a whole row where nobody has read it and it leaves the tree."""

    def verdict(*args: Any) -> Any:
        found = verify(*args)
        if type(found) is tuple and len(found) == 2 and type(found[1]) is int and found[1] == ROOT:
            return keep(found[0]), ROOT
        return found

    return verdict


def tree_law(tree: Tree, laws: VerifierCache, prefix: Prefix) -> Iterator[tuple[Tokens, WholeRow | None, Any]]:
    """(emitted tokens, the row that one more is drawn from or None, probability) of verifying one tree, not merged."""
    slots = tree.slot.tolist()
    children = children_of(tree)
    waiting: list[tuple[int, SlotPath, Tokens, Any]] = [(ROOT, (), (), ONE)]
    while waiting:
        node, path, tokens, mass = waiting.pop()
        below = children.get(node, [])
        found, ends = laws.at(tree, node, path, below, prefix + tokens)
        yield from ((tokens, row, mass * weight) for weight, row in ends)
        for (token, child), weight in found.items():
            if child == ROOT:
                yield (*tokens, token), None, mass * weight
            else:
                chosen = below[child]
                waiting.append((chosen, (*path, slots[chosen]), (*tokens, token), mass * weight))


def children_of(tree: Tree) -> dict[int, list[int]]:
    """Rows of the children of each node that has some, in slot order."""
    slots, children = tree.slot.tolist(), dict[int, list[int]]()
    for node in sorted(range(len(tree)), key=slots.__getitem__):
        children.setdefault(int(tree.parent[node]), []).append(node)
    return children


def emitted_law(classes_: Sequence[TreeClass], laws: VerifierCache, prefix: Prefix) -> Emitted:
    """The law of the emitted tokens over all classes."""
    law: dict[Tokens, Any] = {}
    rows: dict[Tokens, Ends] = {}
    for each in classes_:
        for tokens, row, weight in tree_law(each.tree, laws, prefix):
            if row is None:
                law[tokens] = law.get(tokens, ZERO) + each.probability * weight
            else:
                add_row(rows, tokens, each.probability * weight, row)
    return spread(law, rows)
