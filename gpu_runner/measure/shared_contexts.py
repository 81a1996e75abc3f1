"""All methods on the same contexts: what each would emit on average, whichever of them writes the text.

Methods that are run one after another part ways at the first different token, and the differences between their texts
then drown those between the methods. Here every method drafts its tree at every context; its expected number of emitted
tokens given the tree is computed; and the methods take turns in writing the next tokens, so that the contexts favour
none. One draft tree and one forward of the target hold the trees of all methods: a node that several of them draft
costs as much as one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from gpu_runner.decode.draft_rows import DraftRows
from gpu_runner.decode.drafting import Drafted, growth
from gpu_runner.decode.draws import Draws, Seeded
from gpu_runner.decode.engine import Engine, Scored, Session, tree_mask, until
from gpu_runner.decode.expected_tokens import ACCEPTANCE, by_depth, reach, tokens_given
from gpu_runner.decode.methods import BenchMethod
from gpu_runner.decode.processing import Processing
from gpu_runner.decode.verification import descend
from gpu_runner.measure.bench import Setting, engine_of
from gpu_runner.measure.prompts import Question
from gpu_runner.model.causal_lm import on_device
from gpu_runner.model.chat import Message, end_ids, prompt_ids, text_of
from montecarlo.keyed_random import derived
from rheo_core import InvalidInput, Tree
from rheo_core.tree import ROOT

STREAM = 1
"""Keeps these draws apart from those of the benchmark with the same seed."""


@dataclass
class SharedAnswer:
    """One answer to one question, written in turns, with all methods on its contexts; JSON-ready.

    By the method's label and with one entry a context: `expected` emitted tokens given the tree (the target's own
    included, none after an end token), `accepted` = P(at least one drafted token is accepted) given the tree, and
    `coverage`, the mass of q (T = 1) at the context that the sampled token's support holds (methods that sample only).
    `by_depth` has the mean of P(at least d are accepted), d = 1, 2, ... `advanced` names the method that wrote on from
    each context and `emitted` says how many tokens it wrote, which `expected` of that method predicts without bias.
    """

    expected: dict[str, list[float]]
    accepted: dict[str, list[float]]
    coverage: dict[str, list[float]]
    by_depth: dict[str, list[float]]
    advanced: list[str] = field(default_factory=list)
    emitted: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def same_contexts(
    setting: Setting, methods: Sequence[BenchMethod], number: int, question: Question, seed: int
) -> SharedAnswer:
    """All turns of one question; each turn ends as in the benchmark, its last cycle not cut at the length.

    A method's entries at a context do not depend on which other methods take part, nor on their order (up to rounding,
    as batches differ); only who writes on does. The baseline, which drafts nothing, is left out.
    """
    contexts = Contexts(setting, methods)
    labels, target, stops = contexts.labels, setting.target, end_ids(setting.target)
    first = derived(seed, number) % len(labels)
    found = contexts.empty_answer()
    messages: list[Message] = []
    session = None
    for turn, content in enumerate(question):
        messages.append({"role": "user", "content": content})
        prompt = prompt_ids(target, messages, setting.plain)
        session = contexts.host.start(prompt) if session is None else session
        contexts.host.set_text(session, prompt)
        session.cycles, written = 0, 0
        draws = Seeded(derived(seed, number, turn, STREAM))
        tokens: tuple[int, ...] = ()
        while written < setting.length and not (tokens and tokens[-1] in stops):
            context = contexts.draft_all(session, draws)
            contexts.record(found, context, stops)
            label = labels[(first + len(found.advanced)) % len(labels)]
            tokens = contexts.extend(session, context, label, draws, stops)
            written += len(tokens)
            found.advanced.append(label)
            found.emitted.append(len(tokens))
            found.tokens += tokens
        if turn + 1 < len(question):
            messages.append({"role": "assistant", "content": text_of(target, session.tokens[len(prompt) :])})
    found.by_depth = {
        label: [total / len(found.advanced) for total in totals] for label, totals in found.by_depth.items()
    }
    return found


Trees = tuple[object, ...]
"""What makes two methods draft the same trees: lead, proxy, shape, support."""


@dataclass(frozen=True)
class DraftedContext:
    """One context: the trees of all methods, and one forward of the target over all of their nodes.

    `rows` holds for each tree the row of the forward that every node has; row 0 is the text's last token.
    """

    root: DraftRows
    drafted: dict[Trees, Drafted]
    rows: dict[Trees, list[int]]
    scored: Scored
    laws: Laws


class Laws:
    """The target's laws by row, each computed once."""

    def __init__(self, processing: Processing, logits: Tensor) -> None:
        self.processing = processing
        self.logits = logits
        self._known: dict[int, Tensor] = {}

    def __getitem__(self, row: int) -> Tensor:
        if row not in self._known:
            self._known[row] = self.processing.law(self.logits[row : row + 1])[0]
        return self._known[row]


class Contexts:
    """The methods of a comparison, looking at one context after another of a session."""

    def __init__(self, setting: Setting, methods: Sequence[BenchMethod]) -> None:
        if setting.fault is not None:
            raise InvalidInput("fault", setting.fault, "none: faulty methods write texts of another law")
        self.engines: dict[str, Engine] = {}
        for method in methods:
            engine = engine_of(setting, method)
            if engine is None:
                continue
            if engine.parts.verify not in ACCEPTANCE:
                raise InvalidInput(
                    "method", method.label, "one whose acceptance is known: Algorithm 1, vanilla or RRSw"
                )
            if method.label in self.engines:
                raise InvalidInput("method", method.label, "a label of its own for each")
            self.engines[method.label] = engine
        if not self.engines:
            raise InvalidInput("methods", [method.label for method in methods], "at least one that drafts")
        self.setting = setting
        self.host = next(iter(self.engines.values()))

    @property
    def labels(self) -> list[str]:
        """The methods that draft, in their order."""
        return list(self.engines)

    def empty_answer(self) -> SharedAnswer:
        """An answer before its first context."""
        sampling = [label for label, engine in self.engines.items() if engine.lead < engine.shape.width]
        return SharedAnswer(
            expected={label: [] for label in self.engines},
            accepted={label: [] for label in self.engines},
            coverage={label: [] for label in sampling},
            by_depth={label: [0.0] * engine.shape.depth for label, engine in self.engines.items()},
        )

    def draft_all(self, session: Session, draws: Draws) -> DraftedContext:
        """Draft every method's tree below the session's text, and read the target's rows on all of them."""
        self.host.catch_up(session)
        text = on_device(session.tokens, self.setting.target.device)
        logits = session.draft.root(text, session.features)
        drafted = self._grown(session, logits, draws)
        tokens, parents, rows = joined([each.tree for each in drafted.values()])
        scored = self._scored(session, tokens, parents)
        return DraftedContext(
            self._rows(self.host, logits),
            drafted,
            dict(zip(drafted, rows, strict=True)),
            scored,
            Laws(self.setting.processing, scored.logits),
        )

    def record(self, found: SharedAnswer, context: DraftedContext, end: Collection[int]) -> None:
        """Add a context's figures to an answer; `by_depth` is added up."""
        for label, engine in self.engines.items():
            tree, target, tail = self._laws(context, engine)
            reached = reach(tree, target, tail, engine.parts.verify, end)
            deep = by_depth(tree, reached, engine.shape.depth)
            found.expected[label].append(tokens_given(tree, reached, end))
            found.accepted[label].append(deep[0])
            found.by_depth[label] = [a + b for a, b in zip(found.by_depth[label], deep, strict=True)]
            if label in found.coverage:
                found.coverage[label].append(_coverage(context.root, engine.support))

    def extend(
        self, session: Session, context: DraftedContext, label: str, draws: Draws, end: Collection[int] = ()
    ) -> tuple[int, ...]:
        """One method verifies its tree and the session goes on with what it emits, up to the first end token."""
        engine = self.engines[label]
        tree, target, tail = self._laws(context, engine)
        emitted, path = descend(tree, target, tail, engine.parts.verify, engine.lead, draws, session.cycles)
        own = context.rows[_trees(engine)]
        kept = on_device([0, *(own[node] for node in path)], self.setting.target.device)
        tokens = until(emitted, end)
        engine.advance(session, kept, context.scored, tokens)
        return tokens

    def _grown(self, session: Session, root: Tensor, draws: Draws) -> dict[Trees, Drafted]:
        """The trees of all methods, grown together: a level's nodes are expanded once, whoever asked for them."""
        engines = {_trees(engine): engine for engine in self.engines.values()}
        ids = self.setting.draft.ids
        growing = {
            key: growth(
                self._rows(engine, root),
                engine.shape,
                engine.lead,
                engine.parts.proxy,
                draws,
                cycle=session.cycles,
                ids=ids,
            )
            for key, engine in engines.items()
        }
        drafted: dict[Trees, Drafted] = {}
        places = {key: [0] for key in engines}
        answers: dict[Trees, DraftRows | None] = dict.fromkeys(engines)
        while True:
            level: dict[tuple[int, int], int] = {}
            asking = []
            for key, answer in answers.items():
                try:
                    tokens, parents = next(growing[key]) if answer is None else growing[key].send(answer)
                except StopIteration as ended:
                    drafted[key] = ended.value
                    continue
                asking.append(key)
                nodes = [
                    (places[key][parent], token)
                    for token, parent in zip(tokens.tolist(), parents.tolist(), strict=True)
                ]
                places[key] = [level.setdefault(node, len(level)) for node in nodes]
            if not asking:
                return {key: drafted[key] for key in engines}
            above, below = (on_device(column, root.device) for column in zip(*level, strict=True))
            logits = session.draft.expand(below if ids is None else ids[below], above)
            answers = {key: self._rows(engines[key], logits[places[key]]) for key in asking}

    def _scored(self, session: Session, tokens: Sequence[int], parents: Sequence[int]) -> Scored:
        """The target's rows after the text's last token and after every node."""
        device, past = self.setting.target.device, len(session.tokens) - 1
        mask = tree_mask(on_device(parents, device))
        ids = on_device([session.tokens[-1], *tokens], device)
        visible = torch.cat([mask.new_ones(len(ids), past), mask], dim=-1)
        features = self.setting.draft.features
        return Scored(*self.setting.target(ids, past - 1 + mask.sum(-1), visible, session.cache, features=features))

    def _rows(self, engine: Engine, logits: Tensor) -> DraftRows:
        return DraftRows.logits(logits, self.setting.processing.temperature, engine.support)

    def _laws(
        self, context: DraftedContext, engine: Engine
    ) -> tuple[Tree, Callable[[int], Tensor], Callable[[int], Tensor]]:
        """A method's tree, with the target law and q~ below a node as functions of the node."""
        drafted, rows = context.drafted[_trees(engine)], context.rows[_trees(engine)]

        def target(node: int) -> Tensor:
            return context.laws[0 if node == ROOT else rows[node]]

        def tail(node: int) -> Tensor:
            return engine.parts.tail(drafted, node, self.setting.target.vocabulary, self.setting.draft.ids)

        return drafted.tree, target, tail


def joined(trees: Sequence[Tree]) -> tuple[list[int], list[int], list[list[int]]]:
    """Trees below one text as one: tokens and parents of its nodes, and for each tree the rows of its nodes.

    Row 0 is the text's last token, so node n of the joined tree has row n + 1.
    """
    known: dict[tuple[int, int], int] = {}
    places: list[list[int]] = []
    for tree in trees:
        own: list[int] = []
        for token, parent in zip(tree.token.tolist(), tree.parent.tolist(), strict=True):  # parents come first
            own.append(known.setdefault((ROOT if parent == ROOT else own[parent], token), len(known)))
        places.append(own)
    return [token for _, token in known], [parent for parent, _ in known], [[n + 1 for n in own] for own in places]


def _trees(engine: Engine) -> Trees:
    return (engine.lead, engine.parts.proxy, engine.shape, engine.support)


def _coverage(root: DraftRows, support: int | None) -> float:
    size = root.score.shape[-1]
    if support is None or support >= size:
        return 1.0
    return float(root.score[0].gather(-1, root.best(support)[0]).sum(dtype=torch.float64))
