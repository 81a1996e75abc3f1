"""A part is known by what it is, and never by its name: only then may a proof for every target speak of it."""

import copy
import functools
import importlib
import json
import pickle
import sys
import types
from dataclasses import dataclass
from fractions import Fraction as F

import numpy as np
import pytest

from exact import certify
from exact.enumeration import tree_classes
from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.methods import methods
from exact.runtime.reachable import State
from exact.verdict import every_target, identity, reference_code, watched_proxy
from exact.verdict.document import parts
from exact.verdict.identity import as_it_runs, identities, is_ours, unknown_parts
from exact.verdict.reference_code import altered_reference
from rheo_core import InvalidInput, TreeMethod, TreeShape, proxies, verification
from rheo_core.growth import grown
from rheo_core.verification import algorithm_1, in_slot_order, rrsw
from tests.exact.verdict.test_document import recheck
from tests.pairs import alike, rational, rule, varied

pytestmark = pytest.mark.exact

# The rows on which a rule with Algorithm 1's name loses, as sixths: q, and the p that shows it.
Q = {"": "321", "0": "231", "1": "222", "2": "141", "0,0": "042", "0,1": "231", "0,2": "213", "1,0": "420"}
Q |= {"1,1": "420", "1,2": "222", "2,0": "132", "2,1": "411", "2,2": "222"}
P = {"": "600", "0": "330", "1": "033", "2": "033", "0,0": "033", "0,1": "330", "0,2": "303", "1,0": "303"}
P |= {"1,1": "330", "1,2": "033", "2,0": "033", "2,1": "303", "2,2": "033"}
SHAPE = TreeShape(3, 2, 4)
SMALL = TreeShape(2, 2, 3)
ROWS = varied(rational(1, 2, 3), rational(3, 1, 1))

METHODS_MODULE = importlib.import_module("rheo_core.methods")  # whose attribute of the package is the mapping


def sixths(rows):
    """A model of rows that are written as sixths."""
    return lambda prefix: [F(int(digit), 6) for digit in rows[",".join(map(str, prefix))]]


def few_only(indices):
    """An order that drops candidates where there are two or more of them."""
    return indices if len(indices) < 2 else []


FEW = TreeMethod("few-only", "lossless", 0, verify=functools.partial(algorithm_1, order=few_only))


def test_a_rule_with_algorithm_1s_name_that_drops_candidates_is_lossy_and_never_proved():
    lossy = certify(FEW, sixths(P), sixths(Q), SHAPE)
    assert (lossy.lossless, lossy.total_variation) == (False, F(1, 12))
    found = lossy.counterexample
    assert found is not None
    assert (found.sequence, found.got, found.right) == ((0, 0), F(7, 12), F(1, 2))
    hidden = certify(FEW, sixths(Q), sixths(Q), SHAPE)
    assert (hidden.lossless, hidden.every_target) == (True, False)
    losing = hidden.every_target_counterexample
    assert losing is not None
    other = [F(1, 3)] * 3  # at prefixes that no text reaches
    assert certify(FEW, lambda prefix: losing.target.get(prefix, other), sixths(Q), SHAPE).lossless is False


def test_its_document_does_not_let_the_checker_take_it_for_algorithm_1():
    document = json.loads(certify(FEW, sixths(Q), sixths(Q), SHAPE).to_json())
    method = document["inputs"]["method"]
    assert method["verify"] is None
    assert method["identity"]["verify"]["known"] is False
    assert "order=tests.exact.verdict.test_identity.few_only" in method["identity"]["verify"]["is"]
    assert "emitted" in recheck(document)


def test_known_by_name_alone_it_would_be_proved(monkeypatch):
    """Planted fault: the condition that looks at the function of a partial and not at what is bound to it."""
    named = identity.Identity("algorithm_1", "", "algorithm_1")
    monkeypatch.setattr(identity, "_verify", lambda verify: named)
    monkeypatch.setattr(identity, "altered_reference", str)
    assert certify(FEW, sixths(Q), sixths(Q), SHAPE).every_target is True


class Equal:
    """A rule and a proxy that is equal to everything."""

    uses_token = False
    __wrapped__ = algorithm_1

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(algorithm_1)

    def __call__(self, *arguments):
        if len(arguments) == 4:
            return arguments[0][arguments[1][0]]
        return algorithm_1(*arguments)


class Sub(proxies.Constant):
    def __call__(self, score, order, m, sampled):
        return score[order[0]]


def decorated(function):
    @functools.wraps(function)
    def inner(*arguments, **named):
        return function(*arguments, **named)

    return inner


class Holder:
    verify = functools.partialmethod(lambda self, *rest, **named: algorithm_1(*rest, **named), order=few_only)


class Overriding(TreeMethod):
    """A tree method whose cycle is another one: it emits the draft's best token."""

    def cycle(self, target, draft, prefix, shape, chooser, ids=None):
        return METHODS_MODULE.Cycle((int(np.argmax(draft(prefix))),), 0, None)


PAPER = "min{q(x_m), z}"
copied = types.FunctionType(algorithm_1.__code__, dict(algorithm_1.__globals__), "algorithm_1")
copied.__kwdefaults__ = {"order": few_only}
copied.__module__, copied.__qualname__ = algorithm_1.__module__, algorithm_1.__qualname__
partial = functools.partial
IMPOSTORS = {
    "partial of a partial": {"verify": partial(partial(algorithm_1), order=few_only)},
    "subclass of partial": {"verify": type("P", (partial,), {})(algorithm_1)},
    "partial with another order": {"verify": partial(algorithm_1, order=lambda rest: rest[::-1])},
    "partialmethod": {"verify": Holder().verify},
    "copy with another default": {"verify": copied},
    "decorated": {"verify": decorated(algorithm_1)},
    "equal to everything": {"verify": Equal()},
    "proxy equal to everything": {"proxy": Equal()},
    "subclass of Constant": {"proxy": Sub(F(1, 4))},
    "rule under the paper's name": {
        "proxy": proxies.ProxyRule(PAPER, lambda score, order, m, y: score[order[0]], False)
    },
    "name that lies": {"proxy": proxies.ProxyRule("z", proxies.RHEO.rule, False)},
    "name that is no text": {"proxy": proxies.ProxyRule(Equal(), proxies.RHEO.rule, False)},  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", IMPOSTORS)
def test_what_only_bears_a_known_name_is_never_proved(name):
    impostor = TreeMethod("impostor", "lossless", 1, **IMPOSTORS[name])
    assert unknown_parts(impostor)
    described = parts(impostor, 1)
    assert None in (described["proxy"], described["verify"])
    found = certify(impostor, alike(rational(3, 2, 1)), alike(rational(2, 2, 1)), SMALL)
    assert found.every_target is not True
    assert "these rows" in found.scope


@pytest.mark.parametrize("name", [each for each, made in methods.items() if isinstance(made, TreeMethod)])
def test_the_methods_of_the_paper_are_known(name):
    method = methods[name]
    ours = name != "rheo-optimal"
    assert (unknown_parts(method) == "") == ours, unknown_parts(method)


def test_a_partial_that_binds_nothing_new_is_known():
    for verify in (partial(algorithm_1), partial(algorithm_1, order=in_slot_order)):
        assert unknown_parts(TreeMethod("same", None, 1, verify=verify)) == ""


def test_a_copy_that_was_sent_here_is_known():
    copy = proxies.ProxyRule(PAPER, proxies.RHEO.rule, False)
    assert unknown_parts(TreeMethod("copy", None, 1, proxy=copy)) == ""


def test_a_subclass_is_certified_by_the_cycle_that_it_runs():
    lossy = Overriding("rheo", "lossless", 1)
    found = certify(lossy, alike(rational(1, 1, 1)), alike(rational(3, 2, 1)), SMALL)
    assert (found.lossless, found.every_target, found.classes) == (False, False, None)
    written = rule("rheo", lead=1)
    object.__setattr__(written, "cycle", functools.partial(Overriding.cycle, written))
    assert certify(written, alike(rational(1, 1, 1)), alike(rational(3, 2, 1)), SMALL).lossless is False
    assert as_it_runs(rule("rheo")) is rule("rheo")


def patched(monkeypatch, what):
    """Alter the loaded reference code in one of the ways that it must be seen in."""
    if what == "code":
        monkeypatch.setattr(algorithm_1, "__code__", rrsw.__code__.replace(co_name="algorithm_1"))
    elif what == "global":
        monkeypatch.setattr(verification, "residual", lambda p, q: p)
    elif what == "built-in name":
        monkeypatch.setattr(verification, "min", max, raising=False)
    elif what == "keyword default":
        monkeypatch.setattr(algorithm_1, "__kwdefaults__", {"order": few_only})
    elif what == "frozen value":
        monkeypatch.setitem(vars(proxies.RHEO), "rule", proxies.RAW.rule)
    elif what == "method of a class":
        monkeypatch.setattr(proxies.ProxyRule, "__call__", lambda self, score, order, m, y: score[y])
    elif what == "attribute access":
        monkeypatch.setattr(proxies.ProxyRule, "__getattribute__", object.__getattribute__, raising=False)
    elif what == "constructions":
        monkeypatch.setattr(METHODS_MODULE, "CONSTRUCTIONS", {**METHODS_MODULE.CONSTRUCTIONS, "layered": grown})
    elif what == "default of a field":
        monkeypatch.setattr(TreeMethod.__dataclass_fields__["lead"], "default", 2)
    elif what == "module":
        monkeypatch.setitem(sys.modules, "rheo_core.laws", types.ModuleType("rheo_core.laws"))
    elif what == "number of the checks":
        monkeypatch.setattr(tree_classes, "BRUTE_FORCE_LIMIT", 3)
    else:
        monkeypatch.setattr(every_target, "first_failing", lambda *arguments: None)


ALTERED = {
    "code": "rheo_core.verification.algorithm_1",
    "global": "rheo_core.verification.residual",
    "built-in name": "rheo_core.verification.min",
    "keyword default": "rheo_core.verification.algorithm_1",
    "frozen value": "rheo_core.pool.RHEO",
    "method of a class": "rheo_core.pool.",
    "attribute access": "rheo_core.pool.",
    "constructions": "rheo_core.methods.CONSTRUCTIONS",
    "default of a field": "rheo_core.",
    "module": "rheo_core.",
    "number of the checks": "exact.enumeration.tree_classes.BRUTE_FORCE_LIMIT",
    "check of the proof": "exact.verdict.every_target.first_failing",
}


@pytest.mark.parametrize("what", ALTERED)
def test_altered_reference_code_is_named_and_nothing_is_proved(monkeypatch, what):
    assert altered_reference() == ""
    patched(monkeypatch, what)
    assert altered_reference().startswith(ALTERED[what])
    row = alike(rational(1, 1))
    found = certify("rheo", row, row, TreeShape(1, 1, 1))
    assert found.every_target is not True
    assert found.parts["verify"] is None
    assert "is not what its file defines" in found.every_target_reason or found.every_target is False
    monkeypatch.undo()
    assert altered_reference() == ""


def test_looking_at_nothing_again_would_miss_what_was_altered_later(monkeypatch):
    """The planted fault: what was found whole once is taken for whole for ever."""
    assert altered_reference() == ""
    monkeypatch.setattr(reference_code.Whole, "holds", lambda self: True)
    patched(monkeypatch, "global")
    assert altered_reference() == ""


def test_what_pickling_and_copying_leave_in_a_class_is_no_change():
    for each in (SHAPE, proxies.RHEO, rule("rheo")):
        pickle.loads(pickle.dumps(copy.deepcopy(each)))
    assert altered_reference() == ""


def test_code_is_ours_by_where_it_is_defined_and_not_by_what_it_calls_itself():
    def posing(*arguments):
        return algorithm_1(*arguments)

    posing.__module__ = "rheo_core.verification"
    for theirs in (
        posing,
        partial(algorithm_1, order=posing),
        Equal(),
        copied,
        Sub(F(1, 2)),
        Overriding("r", None, 1).cycle,
    ):
        assert not is_ours(theirs)
    for ours in (
        algorithm_1,
        partial(algorithm_1, order=in_slot_order),
        proxies.RHEO,
        proxies.Constant(F(1, 2)),
        rule("rheo").cycle,
    ):
        assert is_ours(ours)
    for method in methods.values():
        if isinstance(method, FixedTreeMethod):
            assert is_ours(method.verify), method
            assert is_ours(method.draft), method


def test_what_is_bound_changes_the_digest():
    def digests(verify):
        return identities(TreeMethod("one", None, 1, verify=verify))["verify"].digest

    def depends(on):
        return lambda *arguments: algorithm_1(*arguments, order=on)

    made = [
        digests(partial(algorithm_1, order=few_only)),
        digests(partial(algorithm_1, order=sorted)),
        digests(algorithm_1),
    ]
    made += [digests(depends(few_only)), digests(depends(sorted))]
    assert len(set(made)) == len(made)
    assert digests(depends(few_only)) == made[3]


# Proxies of a user's own


@dataclass(frozen=True)
class Counting:
    """Honest for some calls, then the score of Y itself."""

    calls: list[int]
    honest: int
    uses_token: bool = True

    def __call__(self, score, order, m, sampled):
        self.calls.append(1)
        return proxies.RHEO(score, order, m, sampled) if len(self.calls) <= self.honest else score[sampled]


def own(proxy):
    """A method with a proxy of the user's own."""
    return TreeMethod("own", "lossless", 1, proxy=proxy)


class Liar:
    uses_token = False

    def __call__(self, score, order, m, sampled):
        return score[sampled]


generator = np.random.default_rng(5)


def rarely_raw(score, order, m, sampled):
    return score[sampled] if generator.random() < 0.001 else proxies.RHEO(score, order, m, sampled)


def honest_user(score, order, m, sampled):
    return proxies.RHEO(score, order, m, sampled)


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        (lambda: Counting([], 400), "in the same place|keeps nothing"),
        (lambda: Counting([], 3), "in the same place|keeps nothing"),
        (Liar, "change with Y"),
        (lambda: rarely_raw, "a call that changes the generator global `generator`"),
    ],
)
def test_a_proxy_that_is_no_function_of_its_row_is_refused(proxy, said):
    with pytest.raises(InvalidInput, match=said):
        certify(own(proxy()), ROWS, varied(rational(5, 3, 2), rational(1, 2, 2)), SMALL)


def test_an_honest_proxy_of_a_users_own_holds_on_these_rows_and_no_more():
    found = certify(own(honest_user), ROWS, varied(rational(5, 3, 2), rational(1, 2, 2)), SMALL)
    assert (found.lossless, found.every_target) == (True, None)
    assert "holds on these rows" in found.every_target_reason


def raw_on_floats(score, order, m, sampled):
    """The paper's proxy on rationals, the score of Y itself on floats."""
    return proxies.RHEO(score, order, m, sampled) if score.dtype == object else score[sampled]


def test_a_proxy_that_is_wrong_on_floats_alone_is_lossy_and_its_document_is_checked():
    found = certify(own(raw_on_floats), ROWS, varied(rational(5, 3, 2), rational(1, 2, 2)), TreeShape(3, 1, 2))
    assert (found.lossless, found.every_target) == (False, False)
    assert "emitted" in recheck(json.loads(found.to_json()))


def test_unwatched_a_proxy_that_changes_late_would_pass(monkeypatch):
    """Planted fault: the proxy's calls are not made again, and what it keeps is not compared."""
    monkeypatch.setattr(State, "changed", lambda self: None)
    monkeypatch.setattr(State, "changed_at_last", lambda self: None)
    monkeypatch.setattr(watched_proxy.WatchedProxy, "replay", lambda self, least: None)
    found = certify(own(Counting([], 400)), ROWS, varied(rational(5, 3, 2)), SMALL)
    assert found.lossless
