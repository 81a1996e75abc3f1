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
from rheo_core.checks import InvalidInput, check_count, check_id
from rheo_core.chooser import Chooser
from rheo_core.construction import layered
from rheo_core.growth import grown
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel, check_prefix
from rheo_core.pool import Drafter, Proxy
from rheo_core.tree import Nodes, Tree, TreeShape
from rheo_core.verification import Verify, algorithm_1, rrsw, vanilla, verify_tree

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
        """Give the number m of lead slots at this shape."""
        return shape.width if self.lead is None else self.lead

    def drafter(self, pair: ModelPair, shape: TreeShape) -> Drafter:
        """Give the candidate pools of this method on one pair of models."""
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
        pair = ModelPair(target, draft, ids)
        prefix = check_prefix(prefix, pair)
        drafter = self.drafter(pair, shape)
        tree = CONSTRUCTIONS[self.construction](drafter, prefix, shape, chooser)
        tokens = verify_tree(tree, drafter, prefix, self.verify, chooser, cycle_number(chooser))
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
        pair = ModelPair(target, draft, ids)
        return run_cycle(self, pair, check_prefix(prefix, pair), shape, chooser)


def run_cycle(method: Method, pair: ModelPair, prefix: Prefix, shape: TreeShape, chooser: Chooser) -> Cycle:
    """Run one cycle of a method of any kind; raises unless it emits 1..D+1 ids of the target's vocabulary."""
    if isinstance(method, FunctionMethod):
        mapped = {} if pair.ids is None else {"ids": pair.ids}
        result = method.function(pair.p, pair.given_draft, prefix, shape, chooser, **mapped)
    else:
        result = method.cycle(pair.p, pair.given_draft, prefix, shape, chooser, pair.ids)
    given = result.tokens if isinstance(result, Cycle) else result
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)) or np.ndim(given) != 1:
        raise InvalidInput(f"result of {method.name}", result, "a Cycle or a sequence of token ids")
    size, most = len(pair.p(prefix)), shape.depth + 1
    tokens = tuple(check_id(token, size, f"token emitted by {method.name}") for token in given)
    if not 1 <= len(tokens) <= most:
        raise InvalidInput(f"tokens emitted by {method.name}", tokens, f"1 to {most} (depth + 1) of them")
    tree = result.tree if isinstance(result, Cycle) else Nodes().tree(np.dtype(object))
    return Cycle(tokens, len(tokens) - 1, tree)


def cycle_number(chooser: Chooser) -> int:
    """The number of the cycle that a chooser serves, for the addresses of coins and draws; 0 unless it says one."""
    return int(getattr(chooser, "cycle", 0))


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
    """Give the method itself, or the one registered under a name."""
    if not isinstance(given, str):
        if not callable(getattr(given, "cycle", None)):
            raise InvalidInput("method", given, "a Method (name, claim, cycle) or a registered name")
        return given
    if given not in known:
        raise InvalidInput("method", given, f"one of {', '.join(known)}")
    return known[given]
