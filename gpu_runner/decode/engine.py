"""The speculative decoder: draft a tree, verify it in one forward of the target, keep the accepted path.

One sequence at a time (batch 1). The target's cache holds the text but its last token; each cycle feeds that token and
all drafted nodes at once, position = depth, every node seeing the text and its own ancestors, and afterwards keeps the
rows of the accepted path. Everything that could be got wrong in silence is a named part, so that it can be replaced by
a planted fault and the certificate be seen to refute it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import torch
from torch import Tensor

from gpu_runner.decode.compiled import Backend, begin_cycle, compiled_level
from gpu_runner.decode.draft_rows import DraftRows, check_support
from gpu_runner.decode.drafting import Drafted, Growing, Level, Nodes, Rank, by_score, layered, level
from gpu_runner.decode.draws import Draws
from gpu_runner.decode.expected_tokens import ACCEPTANCE, expected_tokens
from gpu_runner.decode.laws import check_int
from gpu_runner.decode.methods import check_lead
from gpu_runner.decode.one_read import ORDERS, descend_at_once
from gpu_runner.decode.pool import TorchProxy, torch_proxy
from gpu_runner.decode.processing import Processing
from gpu_runner.decode.verification import TorchVerify, descend, torch_verify
from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.causal_lm import CausalModel, on_device
from gpu_runner.model.drafts.base import Draft, DraftSession
from rheo_core import DEFAULT_SUPPORT, InvalidInput, Tree, TreeMethod, TreeShape
from rheo_core.checks import check_id


def ancestors(nodes: Nodes) -> Tensor:
    """What the root token and the nodes see of each other: bool [1 + n, 1 + n], themselves and their ancestors."""
    return tree_mask(nodes.parent)


def tree_mask(parent: Tensor) -> Tensor:
    """Ancestors from parents [n] (-1: the root token, which is row 0): bool [1 + n, 1 + n]."""
    above = torch.cat([parent.new_full((1,), 0), parent + 1])
    seen = torch.eye(len(above), dtype=torch.bool, device=above.device)
    for _ in range(len(above).bit_length()):
        seen = seen | seen[above]
        above = above[above]
    return seen


def depths(nodes: Nodes) -> Tensor:
    """Positions of the nodes [n] relative to the root token."""
    return nodes.depth


def tail_below(drafted: Drafted, node: int, size: int, ids: Tensor | None) -> Tensor:
    """q~ [V] below a node, in target ids."""
    return drafted.tail(node).dense(size, ids)[0]


def own_row(tree: Tree, node: int) -> int:
    """The row of logits after a node (-1: the root token, which comes first)."""
    return node + 1


def root_and_path(path: Sequence[int]) -> list[int]:
    """Rows of the forward that stay in the cache: the root token's and those of the accepted nodes."""
    return [0, *(node + 1 for node in path)]


@dataclass(frozen=True)
class Parts:
    """The replaceable parts of the engine; the defaults are right, `faults` holds wrong ones."""

    proxy: TorchProxy
    verify: TorchVerify
    order: Rank = by_score
    visible: Callable[[Nodes], Tensor] = ancestors
    positions: Callable[[Nodes], Tensor] = depths
    row: Callable[[Tree, int], int] = own_row
    tail: Callable[[Drafted, int, int, Tensor | None], Tensor] = tail_below
    kept: Callable[[Sequence[int]], list[int]] = root_and_path


@dataclass(frozen=True)
class Scored:
    """One forward of the target over a tree: logits [1 + R, V], root token first, and the features of the same rows."""

    logits: Tensor
    features: Tensor


@dataclass(frozen=True)
class EngineCycle:
    """One cycle: emitted target ids (the target's own last), drafted tokens accepted, the tree, seconds spent.

    `expected` is the number of tokens emitted on average given the tree, where the engine was asked for it; `aside`
    are the seconds that it took.
    """

    tokens: tuple[int, ...]
    accepted: int
    tree: Tree
    drafting: float
    verifying: float
    expected: float | None = None
    aside: float = 0.0


@dataclass
class Session:
    """A text under way: its tokens, the target's cache of all but the last of them, the draft's state."""

    tokens: list[int]
    cache: TreeCache
    draft: DraftSession
    features: Tensor
    cycles: int = 0

    def copy(self) -> Session:
        """An independent session in the same state."""
        return Session(list(self.tokens), self.cache.copy(), self.draft.copy(), self.features.clone(), self.cycles)

    def key(self) -> tuple[object, ...]:
        """Equal keys, equal behaviour from here on: tokens and all states, to the bit."""
        states = (self.cache.key(), self.draft.key(), self.features.cpu().numpy().tobytes())
        return (tuple(self.tokens), self.cycles, *states)


@dataclass(frozen=True)
class Generation:
    """Emitted target ids (the prompt not included) and the cycles that emitted them."""

    tokens: tuple[int, ...]
    cycles: tuple[EngineCycle, ...] = field(repr=False)

    @property
    def acceptance_length(self) -> Fraction:
        """tau = tokens emitted / cycles, the target's own token of each cycle included."""
        if not self.cycles:
            raise InvalidInput("cycles", 0, "at least one cycle")
        return Fraction(len(self.tokens), len(self.cycles))


class Engine:
    """A target, a draft, a method, a shape; `processing` is the target law, `support` how many tokens Y is among.

    With a `backend` of torch.compile a level of the draft tree is one graph (`compiled`), from seeded draws only.
    """

    def __init__(
        self,
        target: CausalModel,
        draft: Draft,
        method: TreeMethod,
        shape: TreeShape,
        processing: Processing | None = None,
        support: int | None = DEFAULT_SUPPORT,
        fault: Callable[[Parts], Parts] | None = None,
        expect: bool = False,
        backend: Backend | None = None,
    ) -> None:
        lead = check_lead(method, shape)
        check_support(support)
        self.target = target
        self.draft = draft
        self.method = method
        self.shape = shape
        self.lead = lead
        self.processing = Processing() if processing is None else processing
        self.support = support
        self.expect = expect
        parts = Parts(torch_proxy(method.proxy), torch_verify(method.verify))
        self.parts = parts if fault is None else fault(parts)
        self.one_read = target.device.type == "cuda" and self.parts.verify in ORDERS
        self.backend = backend
        self.grow: Level = level
        if backend is not None:
            growing = Growing(shape.width, lead, self.parts.proxy, self.parts.order)
            self.grow = compiled_level(growing, self.processing.temperature, support, backend)

    def start(self, prompt: Sequence[int]) -> Session:
        """A session at the end of `prompt` (target ids)."""
        session = Session([], TreeCache(), self.draft.start(), self._no_features())
        self.set_text(session, prompt)
        return session

    def set_text(self, session: Session, tokens: Sequence[int]) -> None:
        """Make `tokens` the session's text (a next turn); what is cached of a common beginning is kept."""
        text = [check_id(token, self.target.vocabulary, f"prompt[{i}]") for i, token in enumerate(tokens)]
        if not text:
            raise InvalidInput("prompt", "no tokens", "at least one token")
        pairs = zip(text, session.tokens, strict=False)
        common = next((i for i, (new, old) in enumerate(pairs) if new != old), min(len(text), len(session.tokens)))
        read = session.draft.consumed
        session.draft.rewind(common)
        usable = min(session.cache.length, common)
        if session.draft.consumed < read:
            usable, session.features = min(usable, session.draft.consumed), self._no_features()
        session.tokens = text
        self._forget(session, usable)

    def cycle(self, session: Session, draws: Draws, end: Collection[int] = ()) -> EngineCycle:
        """Draft below the session's text, verify, and append the emitted tokens.

        Emitted tokens are not cut at one of the `end` ids; what is expected counts none after it.
        """
        started = time.perf_counter()
        drafted = self.draft_tree(session, draws)
        tree = drafted.tree
        middle = time.perf_counter()  # reading the tree has waited for the device
        scored = self.score(session, drafted)
        tokens, path = self.commit(session, drafted, scored, draws)
        ended = now(self.target.device)  # the third wait of a cycle, after the tree's and the verification's
        known = self.expect and self.parts.verify in ACCEPTANCE
        expected = expected_tokens(tree, *self.laws(drafted, scored), self.parts.verify, end) if known else None
        aside = now(self.target.device) - ended if known else 0.0
        return EngineCycle(tokens, len(path), tree, middle - started, ended - middle, expected, aside)

    def draft_tree(self, session: Session, draws: Draws) -> Drafted:
        """First step of a cycle: the draft tree below the session's text."""
        self.catch_up(session)
        if self.backend is not None:
            begin_cycle()
        return layered(
            _Expander(self, session),
            self.shape,
            self.lead,
            self.parts.proxy,
            draws,
            cycle=session.cycles,
            ids=self.draft.ids,
            order=self.parts.order,
            grow=self.grow,
        )

    def rows(self, logits: Tensor) -> DraftRows:
        """Draft rows of the draft's logits [n, draft V]."""
        return DraftRows.logits(logits, self.processing.temperature, self.support)

    def score(self, session: Session, drafted: Drafted) -> Scored:
        """Second step: the target's logits after the text and after every node, in one forward."""
        past = len(session.tokens) - 1
        nodes = drafted.nodes
        last = on_device(session.tokens[-1:], self.target.device)
        positions = past + torch.cat([nodes.depth.new_zeros(1), self.parts.positions(nodes)])
        tree = self.parts.visible(nodes)
        visible = torch.cat([tree.new_ones(len(tree), past), tree], dim=-1)
        tokens = torch.cat([last, drafted.target_ids])
        return Scored(*self.target(tokens, positions, visible, session.cache, features=self.draft.features))

    def commit(
        self, session: Session, drafted: Drafted, scored: Scored, draws: Draws
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Third step: verify, keep the accepted path's states, append; emitted tokens and accepted nodes."""
        law, tail = self.laws(drafted, scored)
        tree, number = drafted.tree, session.cycles
        if self.one_read:
            which = on_device([self.parts.row(tree, node) for node in range(-1, len(tree))], self.target.device)
            p = self.processing.law(scored.logits[which])
            tokens, path = descend_at_once(tree, p, tail, self.parts.verify, draws, number)
        else:
            tokens, path = descend(tree, law, tail, self.parts.verify, self.lead, draws, number)
        rows = on_device(self.parts.kept(path), self.target.device)
        self.advance(session, rows, scored, tokens)
        return tokens, path

    def advance(self, session: Session, rows: Tensor, scored: Scored, tokens: Sequence[int]) -> None:
        """Append emitted tokens; of the forward's states, `rows` [1 + accepted] stay, the text's last token first."""
        session.cache.keep(len(session.tokens) - 1, rows)
        session.features = scored.features[rows] if self.draft.features else scored.features
        session.tokens += tokens
        session.cycles += 1

    def laws(self, drafted: Drafted, scored: Scored) -> tuple[Callable[[int], Tensor], Callable[[int], Tensor]]:
        """The target law and q~ below a node, as functions of the node."""

        def law(node: int) -> Tensor:
            row = self.parts.row(drafted.tree, node)
            return self.processing.law(scored.logits[row : row + 1])[0]

        def tail(node: int) -> Tensor:
            return self.parts.tail(drafted, node, self.target.vocabulary, self.draft.ids)

        return law, tail

    def cycles(
        self, session: Session, length: int, draws: Draws, end: Collection[int] = (), whole: bool = False
    ) -> Iterator[EngineCycle]:
        """Cycles until `length` tokens are emitted or one of the `end` ids is; each cycle's tokens are cut there.

        `whole` leaves the last cycle uncut by the length: a cut would bias the tokens counted a cycle.
        """
        check_int(length, 0, "length")
        stops = {check_id(token, self.target.vocabulary, "end") for token in end}
        emitted = 0
        while emitted < length:
            before = len(session.tokens)
            cycle = self.cycle(session, draws, stops)
            tokens = until(cycle.tokens if whole else cycle.tokens[: length - emitted], stops)
            del session.tokens[before + len(tokens) :]
            emitted += len(tokens)
            yield replace(cycle, tokens=tokens, accepted=min(cycle.accepted, len(tokens)))
            if tokens[-1] in stops:
                return

    def generate(self, prompt: Sequence[int], length: int, draws: Draws, end: Collection[int] = ()) -> Generation:
        """Text after `prompt`: until `length` tokens are emitted or one of the `end` ids is, which is then the last."""
        cycles = tuple(self.cycles(self.start(prompt), length, draws, end))
        return Generation(tuple(token for cycle in cycles for token in cycle.tokens), cycles)

    def catch_up(self, session: Session) -> None:
        """Bring the target's cache to the whole text but its last token (the prefill of a turn)."""
        past = len(session.tokens) - 1
        self._forget(session, past)
        held = session.cache.length
        if held < past:
            device = self.target.device
            tokens = on_device(session.tokens[held:past], device)
            positions = torch.arange(held, past, device=device)
            visible = causal(held, past - held, device)
            _, features = self.target(tokens, positions, visible, session.cache, last=1, features=self.draft.features)
            session.features = torch.cat([session.features, features])

    def _forget(self, session: Session, length: int) -> None:
        """Drop target states, and features not yet read, from position `length` on."""
        session.cache.truncate(length)
        session.features = session.features[: max(session.cache.length - session.draft.consumed, 0)]

    def _no_features(self) -> Tensor:
        hidden = self.target.embedding.shape[-1]
        return self.target.embedding.new_empty(0, hidden * max(1, len(self.draft.features)))


class _Expander:
    """A draft session as the drafting loop sees it: rows instead of logits, draft ids mapped to target ids."""

    def __init__(self, engine: Engine, session: Session) -> None:
        self.engine = engine
        self.session = session

    def root(self) -> DraftRows:
        """The row at the text's end."""
        text = on_device(self.session.tokens, self.engine.target.device)
        return self.engine.rows(self.session.draft.root(text, self.session.features))

    def expand(self, tokens: Tensor, parents: Tensor) -> DraftRows:
        """The rows below one level of nodes."""
        ids = self.engine.draft.ids
        return self.engine.rows(self.session.draft.expand(tokens if ids is None else ids[tokens], parents))


def now(device: torch.device) -> float:
    """Seconds on the clock, once the device has done all it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def until(tokens: Sequence[int], stops: Collection[int]) -> tuple[int, ...]:
    """The tokens up to and including the first end token."""
    end = next((i for i, token in enumerate(tokens) if token in stops), len(tokens) - 1)
    return tuple(tokens[: end + 1])
