"""Methods: small frozen values composed of interchangeable parts, and the registry of the built-in ones.

A `TreeMethod` is a lead m, a proxy rule, a construction and a verification rule. Anything else that emits tokens from
a target and a draft is a cycle function marked with `@method`. The wrong proxies of the paper are registered beside the
right one, each with its claim, so that the difference between them can be certified rather than believed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol, overload

import numpy as np

from rheo_core import proxies
from rheo_core.chooser import Chooser
from rheo_core.drafting import grown, layered
from rheo_core.errors import InvalidInput, check_count
from rheo_core.pool import Drafter
from rheo_core.proxies import Proxy
from rheo_core.rows import DraftModel, Pair, Prefix, TargetModel, check_id, check_prefix
from rheo_core.tree import ROOT, SAMPLED, Nodes, Tree, TreeShape
from rheo_core.verification import Verify, algorithm_1, rrsw, vanilla

Claim = Literal["lossless", "lossy"] | None
CONSTRUCTIONS = MappingProxyType({"layered": layered, "grown": grown})


@dataclass(frozen=True)
class Cycle:
    """One draft-and-verify cycle: target ids emitted (the target's own last), drafted ones accepted, the draft tree."""

    tokens: tuple[int, ...]
    accepted: int
    tree: Tree


class Method(Protocol):
    """Anything with a name, a claim and a cycle."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    @property
    def claim(self) -> Claim:
        """What its author says of it."""
        ...

    def cycle(
        self,
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> Cycle:
        """Draft and verify once at `prefix`."""
        ...


@dataclass(frozen=True)
class TreeMethod:
    """A dynamic-tree method made of parts.

    `lead` is the rheostat m (None: all K slots are leads, the plain top-K pool); `proxy` a rule of `rheo_core.proxies`
    or any callable like it; `construction` "layered" or "grown"; `verify` a rule of `rheo_core.verification` or any
    callable like it. Another m: `dataclasses.replace(method, lead=0)`.
    """

    name: str
    claim: Claim
    lead: int | None
    proxy: Proxy = proxies.RHEO
    construction: Literal["layered", "grown"] = "layered"
    verify: Verify = algorithm_1

    def __post_init__(self) -> None:
        if self.claim not in ("lossless", "lossy", None):
            raise InvalidInput("claim", self.claim, '"lossless", "lossy" or None')
        if self.construction not in CONSTRUCTIONS:
            raise InvalidInput("construction", self.construction, '"layered" or "grown"')
        if self.lead is not None:
            object.__setattr__(self, "lead", check_count("lead", self.lead, 0))

    def leads(self, shape: TreeShape) -> int:
        """The number m of lead slots at this shape."""
        return shape.width if self.lead is None else self.lead

    def drafter(self, pair: Pair, shape: TreeShape) -> Drafter:
        """The candidate pools of this method on one pair of models."""
        return Drafter(pair, shape.width, self.leads(shape), self.proxy)

    def cycle(
        self,
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> Cycle:
        """Draft a tree below `prefix`, verify it, emit 1..D+1 target ids."""
        pair = Pair(target, draft, ids)
        prefix = check_prefix(prefix, pair)
        drafter = self.drafter(pair, shape)
        tree = CONSTRUCTIONS[self.construction](drafter, prefix, shape, chooser)
        tokens = descend(tree, drafter, prefix, self.verify, chooser)
        return Cycle(tokens, len(tokens) - 1, tree)


@dataclass(frozen=True)
class FunctionMethod:
    """A cycle function as a method; made by `@method`.

    The function is called as `function(target, draft, prefix, shape, chooser)`, with `ids=ids` added where there is a
    map, and returns a `Cycle` or the emitted tokens. The rows it reads are checked as everywhere else.
    """

    function: Callable[..., Any]
    name: str
    claim: Claim = None

    def cycle(
        self,
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> Cycle:
        """Run the function once; 1..D+1 tokens, each an id of the target's vocabulary."""
        pair = Pair(target, draft, ids)
        return self.run(pair, check_prefix(prefix, pair), shape, chooser)

    def run(self, pair: Pair, prefix: Prefix, shape: TreeShape, chooser: Chooser) -> Cycle:
        """The same on rows that are checked already."""
        mapped = {} if pair.ids is None else {"ids": pair.ids}
        result = self.function(pair.p, pair.given_draft, prefix, shape, chooser, **mapped)
        cycle = result if isinstance(result, Cycle) else _bare_cycle(self.name, result)
        size = len(pair.p(prefix))
        tokens = tuple(check_id(token, size, f"token emitted by {self.name}") for token in cycle.tokens)
        if not 1 <= len(tokens) <= shape.depth + 1:
            raise InvalidInput(f"tokens emitted by {self.name}", tokens, f"1 to {shape.depth + 1} (depth + 1) of them")
        return Cycle(tokens, len(tokens) - 1, cycle.tree)


def _bare_cycle(name: str, tokens: Any) -> Cycle:
    if isinstance(tokens, (str, bytes)) or not isinstance(tokens, (Sequence, np.ndarray)):
        raise InvalidInput(f"result of {name}", tokens, "a Cycle or a sequence of token ids")
    return Cycle(tuple(tokens), len(tokens) - 1, Nodes().tree(np.dtype(object)))


@overload
def method(function: Callable[..., Any], /) -> FunctionMethod: ...
@overload
def method(*, name: str | None = None, claim: Claim = None) -> Callable[[Callable[..., Any]], FunctionMethod]: ...
def method(function: Callable[..., Any] | None = None, /, *, name: str | None = None, claim: Claim = None) -> Any:
    """Mark a cycle function as a method: `@method` or `@method(name=..., claim=...)`.

    >>> @method
    ... def plain(target, draft, prefix, shape, chooser):
    ...     return [chooser.index(target(prefix))]
    >>> plain.name, plain.claim
    ('plain', None)
    """

    def mark(body: Callable[..., Any]) -> FunctionMethod:
        return FunctionMethod(body, str(name or getattr(body, "__name__", "method")), claim)

    return mark if function is None else mark(function)


def descend(tree: Tree, drafter: Drafter, prefix: Prefix, verify: Verify, chooser: Chooser) -> tuple[int, ...]:
    """Verify a tree from the root, parent by parent, until the text leaves it; the emitted tokens."""
    node = ROOT
    tokens: tuple[int, ...] = ()
    while True:
        children = tree.children(node)
        token, child = verify_node(tree, node, children, drafter, prefix + tokens, verify, chooser)
        tokens = (*tokens, token)
        if child == -1:
            return tokens
        node = children[child]


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def verify_node(
    tree: Tree,
    node: int,
    children: list[int],
    drafter: Drafter,
    context: Prefix,
    verify: Verify,
    chooser: Chooser,
) -> tuple[int, int]:
    """Run a verification rule on the children of one node; its answer is checked against the candidates."""
    candidates = [int(tree.token[child]) for child in children]
    sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
    p = drafter.pair.p(context)
    tail = drafter.tail(context) if sampled != -1 else None
    verdict = verify(p, tail, candidates, sampled, drafter.m, chooser, (0, tree.path(node)))
    if not _is_pair(verdict):
        raise InvalidInput("result of verify", verdict, "a pair (token, index of the accepted candidate or -1)")
    token, child = check_id(verdict[0], len(p), "token emitted by verify"), verdict[1]
    if child not in range(-1, len(candidates)) or (child != -1 and candidates[child] != token):
        raise InvalidInput("child", child, f"-1 or the index of token {token} among the candidates {candidates}")
    return token, int(child)


methods: Mapping[str, Method] = MappingProxyType(
    {
        rule.name: rule
        for rule in (
            TreeMethod("top-k", "lossless", lead=None, verify=vanilla),
            TreeMethod("rheo", "lossless", lead=1),
            TreeMethod("rheo-rrsw", "lossless", lead=1, verify=rrsw),
            TreeMethod("rheo-next", "lossless", lead=1, proxy=proxies.NEXT_TOKEN),
            TreeMethod("rheo-z", "lossless", lead=1, proxy=proxies.TAIL_MASS),
            TreeMethod("rheo-adhoc", "lossy", lead=1, proxy=proxies.ADHOC),
            TreeMethod("rheo-raw", "lossy", lead=1, proxy=proxies.RAW),
            TreeMethod("rheo-half", "lossy", lead=1, proxy=proxies.HALF_LEAST),
            TreeMethod("rheo-rrsw-z", "lossy", lead=1, proxy=proxies.TAIL_MASS, verify=rrsw),
        )
    }
)
"""The built-in methods by name."""


def find_method(given: Method | str, known: Mapping[str, Method] = methods) -> Method:
    """The method itself, or the one registered under a name."""
    if not isinstance(given, str):
        if not callable(getattr(given, "cycle", None)):
            raise InvalidInput("method", given, "a Method (name, claim, cycle) or a registered name")
        return given
    if given not in known:
        raise InvalidInput("method", given, f"one of {', '.join(known)}")
    return known[given]
