"""One cycle of the engine run again by rheo_core, on the same rows, draws and coins.

The rows are taken from the engine (on the device, as they were used), the draws and coins from their addresses, so any
difference is one of algorithm or arithmetic. On the CPU there is none; on CUDA sums may be added in another order, and
where that decides a rank, a draw or a coin the first differing node is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exact.report.layout import KINDS
from gpu_runner.decode.drafting import Drafted
from gpu_runner.decode.draws import Seeded, keyed_chooser
from gpu_runner.decode.engine import Engine, Scored, Session
from rheo_core import Cycle, DraftRow, Tree, speculate
from rheo_core.laws import Row
from rheo_core.models import Prefix
from rheo_core.tree import ROOT


class NotDrafted(Exception):
    """rheo_core expands a node, named by its tokens, that the engine did not."""


@dataclass(frozen=True)
class Comparison:
    """One cycle by both: emitted tokens (None where rheo_core needed a row that the engine has not), first difference.

    `difference` says in words where the first differing node is; None: equal trees and tokens.
    """

    tokens: tuple[int, ...]
    reference: tuple[int, ...] | None
    difference: str | None


def compare_cycle(engine: Engine, session: Session, seed: int) -> Comparison:
    """Run one cycle of `session` by the engine, then by rheo_core on what the engine read and drew."""
    number, text = session.cycles, tuple(session.tokens)
    drafted = engine.draft_tree(session, Seeded(seed))
    scored = engine.score(session, drafted)
    tokens, _ = engine.commit(session, drafted, scored, Seeded(seed))
    try:
        expected = reference_cycle(engine, text, drafted, scored, seed, number)
    except NotDrafted as missing:
        return Comparison(tokens, None, f"node {missing}: not expanded, rheo_core expands it")
    difference = first_difference(drafted.tree, expected.tree)
    if difference is None and tokens != expected.tokens:
        difference = f"emitted tokens: {tokens}, rheo_core {expected.tokens}"
    return Comparison(tokens, expected.tokens, difference)


def reference_cycle(engine: Engine, text: Prefix, drafted: Drafted, scored: Scored, seed: int, number: int) -> Cycle:
    """rheo_core's cycle on the engine's rows, with the draws and coins of cycle `number`."""
    everything, kept = drafted.unpruned.host(drafted.ids), drafted.tree
    rows = {everything.tokens_to(node): int(drafted.unpruned.row[node]) for node in range(len(everything))}
    rows = {path: row for path, row in rows.items() if row >= 0} | {(): 0}
    laws = engine.processing.law(scored.logits).cpu().numpy()
    targets = {kept.tokens_to(node): laws[node + 1] for node in [ROOT, *range(len(kept))]}
    ids = None if engine.draft.ids is None else engine.draft.ids.tolist()

    def target(prefix: Prefix) -> Row:
        law: Row = targets.get(prefix[len(text) :], laws[0])  # a pruned node's row is never verified
        return law

    def draft(prefix: Prefix) -> DraftRow:
        path = prefix[len(text) :]
        if path not in rows:
            raise NotDrafted(path)
        row = rows[path]
        tails = drafted.tails

        def tail(lead: Sequence[int]) -> Row | None:
            if tails is None or not bool(tails.present[row]):
                return None
            law: Row = tails.row(row).dense(engine.draft.vocabulary)[0].cpu().numpy()
            return law

        return DraftRow(drafted.score_of_row(row).cpu().numpy(), tail)

    chooser = keyed_chooser(seed, cycle=number)
    return speculate(target, draft, text, engine.method, engine.shape, chooser, ids=ids)


def first_difference(tree: Tree, expected: Tree) -> str | None:
    """The first node, in rank order, in which two trees differ, in words; None where they are equal."""
    for node in range(max(len(tree), len(expected))):
        got, right = _words(tree, node), _words(expected, node)
        if got != right:
            return f"node {node}: {got}, rheo_core {right}"
    return None


def _words(tree: Tree, node: int) -> str:
    if node >= len(tree):
        return "none"
    kind = KINDS[int(tree.kind[node])]
    score = np.format_float_positional(tree.score[node], unique=True)
    path = ".".join(map(str, tree.path(node)))
    return f"token {int(tree.token[node])} in slot {path} ({kind}), score {score}"
