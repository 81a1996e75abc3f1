"""A certificate where classes are too many to list: counted in a graph, replayed in part, proved by the theorem.

It has the attributes of a `Certificate`, save those that only a list of classes could give: what the cycles emit and
accept. Its first verdict follows from the second: a method that is lossless for every target is so on these rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

from exact.enumeration.growth_graph import GrowthGraph, TooManyStates
from exact.runtime.provenance import versions
from exact.runtime.streams import visible
from exact.verdict.certificate import Certificate, CycleFigures, ForEveryTarget, Inputs, OnTheseRows
from exact.verdict.document import rows
from exact.verdict.every_target import FILLINGS, first_moved
from exact.verdict.identity import unknown_parts, verifier_name
from exact.verdict.verifier_condition import ALGORITHM_1, RRSW, VANILLA
from exact.verdict.wide_drafting import (
    FEW,
    MOST_LISTED,
    STATES,
    Replays,
    Tick,
    WideDrafting,
    expected_classes,
    silent,
    states_of,
)
from rheo_core import InvalidInput, Method, ModelPair, TreeMethod, TreeShape
from rheo_core.models import Prefix
from rheo_core.pool import RHEO

SCHEMA = "rheo-graph/1"
THEOREM = "RheoSampling is lossless for every target (exact/rocq, checked by Coq)"
CONDITIONS = {"algorithm_1": ALGORITHM_1, "vanilla": VANILLA, "rrsw": RRSW}


@dataclass(frozen=True)
class GraphLimits:
    """How far to go: classes that are listed one by one, states of a graph, and who is told how far it is."""

    listed: int = MOST_LISTED
    states: int = STATES
    tick: Tick = silent


_BOUNDS: ContextVar[GraphLimits | None] = ContextVar("bounds", default=None)


@contextmanager
def within(bounds: GraphLimits) -> Iterator[None]:
    """Within, certificates keep to these bounds."""
    token = _BOUNDS.set(bounds)
    try:
        yield
    finally:
        _BOUNDS.reset(token)


class NotListed:
    """A figure that only a list of all classes gives."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, certificate: Any, owner: Any = None) -> NoReturn:
        count = "too many" if certificate is None else f"{certificate.graph.classes:,}"
        raise InvalidInput(self.name, f"{count} classes in a graph", "a smaller shape, whose classes are listed")


@dataclass(frozen=True)
class GraphCertificate(Certificate):
    """A certificate by a graph: the verdicts, how many classes and states there are, and which were replayed."""

    graph: GrowthGraph
    replays: Replays
    states: str

    emitted = NotListed()
    text = NotListed()
    classes_digest = NotListed()
    acceptance_by_depth = NotListed()
    acceptance_length = NotListed()

    @property
    def checked_scope(self) -> str:
        """The scope; the first verdict follows from the second one."""
        return (
            f"scope: every target at this q, and so these rows; any number of tokens after prefix {self.prefix}, ends "
            f"not compared; ideal coins; exact; by a graph of {self.graph.states:,} states ({self.states})"
        )

    def listed_figures(self) -> dict[str, object]:
        """The figures that only a list of classes gives: null."""
        return dict.fromkeys(("total_variation", "acceptance_length", "acceptance_by_depth"))

    def document(self) -> dict[str, Any]:
        """The signed document; `recorded` looks at its form and digest, and takes all else as it stands."""
        body: dict[str, Any] = {
            "schema": SCHEMA,
            "versions": versions(),
            "method": self.parts,
            "shape": {"width": self.shape.width, "depth": self.shape.depth, "budget": self.shape.budget},
            "prefix": list(self.prefix),
            "draft": rows(self.draft_rows),
            "graph": {
                "classes": str(self.graph.classes),
                "states": str(self.graph.states),
                "contexts": str(self.graph.contexts),
                "alike": self.states,
            },
            "replays": {
                "by_reference": self.replays.by_reference,
                "reference_mass": str(self.replays.reference_mass),
                "by_twin": self.replays.by_twin,
                "twin_mass": str(self.replays.twin_mass),
            },
            "every_target": self.every_target,
            "every_target_reason": self.every_target_reason,
            "sha256": "",
        }
        return body | {"sha256": _digest(body)}


FIELDS = ("schema", "versions", "method", "shape", "prefix", "draft", "graph", "replays", "every_target")


def recorded(document: Any) -> str | None:
    """What a document by a graph says, all of it as recorded; None for any other. Raises `InvalidInput` on a bad one.

    Its form and its digest are checked, and that nothing is proved of parts that are not known.
    """
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return None
    if document.keys() != {*FIELDS, "every_target_reason", "sha256"}:
        raise InvalidInput(
            "document", sorted(document), f"the entries of a certificate by a graph, {', '.join(FIELDS)}"
        )
    if document["sha256"] != _digest(document):
        raise InvalidInput("sha256", document["sha256"], "the digest of the document: it was altered")
    try:
        known = all(document["method"]["identity"][part]["known"] is True for part in ("proxy", "verify"))
        counts = "; ".join(f"{name} {each}" for name in ("graph", "replays") for name, each in document[name].items())
    except (TypeError, KeyError, AttributeError):
        raise InvalidInput("document", "another form", "the parts of the method, a graph and its replays") from None
    if document["every_target"] and not known:
        raise InvalidInput("every_target", "proved", "undecided: a part is not known")
    every = "proved" if document["every_target"] is True else "undecided"
    return visible(f"every target: {every}; {document['every_target_reason']}; {counts}")


def _digest(document: dict[str, Any]) -> str:
    canonical = json.dumps(document | {"sha256": ""}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def graph_certificate(
    rule: Method, models: ModelPair, draft: Any, inputs: Callable[[], Inputs], prefix: Prefix, shape: TreeShape
) -> GraphCertificate | None:
    """The certificate of a method whose classes are too many to list; None where they can be listed.

    `draft` is the model as it was given, `inputs()` what was certified. Refused, with what is known, where the graph
    itself is too large.
    """
    bounds = _BOUNDS.get() or GraphLimits()
    expected = expected_classes(rule, models, prefix, shape, min(FEW, bounds.listed))
    if expected <= bounds.listed or not isinstance(rule, TreeMethod):
        return None
    name = verifier_name(rule.verify) or ""
    if name == "rrsw" and rule.proxy is not RHEO:  # min{q(x_m), z} never outranks a lead; others may, and RRSw loses
        return None
    tokens = range(len(models.q(prefix).score)) if models.ids is None else [int(each) for each in models.ids]
    wide = WideDrafting(rule, models, prefix, shape, states_of(draft, prefix, shape, tokens, rule.leads(shape)))
    try:
        graph = wide.count(bounds.tick, bounds.states)
        replays = wide.replay(first_moved, FILLINGS, bounds.tick)
    except TooManyStates as error:
        said = f"{error}; about {expected:,} classes, contexts: {wide.states.known}"
        raise InvalidInput("shape", said, "a smaller budget or depth, or a table of rows that draft alike") from None
    except KeyboardInterrupt as error:
        error.add_note(f"interrupted; known so far: {wide.known()}")
        raise
    proved = replays.moved is None and not unknown_parts(rule)
    if proved:
        reason = (
            f"not replayed in full: {graph.classes:,} classes have probability prod q~ by growth, whose trees are the "
            f"layered code's by {THEOREM}; {CONDITIONS[name]}; the parts are rheo_core's by their identity; {replays}"
        )
    else:
        reason = f"undecided: a class is not what the layered code builds from its draws; {replays}"
    rational = models.p(prefix).dtype.kind == "O"
    first = OnTheseRows(True if proved and rational else None, Fraction(0), None, None)
    figures = CycleFigures({}, {}, graph.classes, None, ())
    every = ForEveryTarget(True if proved else None, reason)
    return GraphCertificate(inputs(), first, every, figures, graph, replays, wide.states.known)
