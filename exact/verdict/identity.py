"""What a part of a method is, down to everything that is bound to it.

"Every target: proved" is a theorem about the verification rules and proxies of `rheo_core`. A name says too little: a
partial with another `order`, a subclass, an object that is equal to everything or a patched helper answer to the same
one. So a part is known only if it is the very object that `rheo_core` defines, with nothing bound to it but plain
values, and if the loaded reference code is what its files define. Whatever else a method is made of is described.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.enumeration.rationals import fraction, long_numbers
from exact.verdict.reference_code import DESCRIPTIVE, NUMBERS, PLAIN, altered_reference, digest, reference_digest
from rheo_core import FunctionMethod, Method, TreeMethod, proxies, verification
from rheo_core.methods import Claim
from rheo_core.pool import ProxyRule
from rheo_core.proxies import Constant

VERIFIERS = ("algorithm_1", "vanilla", "rrsw")
PROXIES = ("RHEO", "TAIL_MASS", "NEXT_TOKEN", "RAW", "HALF_LEAST")
KINDS: tuple[Any, ...] = (TreeMethod, FixedTreeMethod, FunctionMethod)
PACKAGES = ("rheo_core", "exact", "montecarlo", "gpu_runner")


@dataclass(frozen=True)
class Identity:
    """What a part is, in words and as a digest of its code and of all that is bound to it.

    `name` is what the checker calls it (None: not known to it); `unknown` says why it is not known, "" where it is.
    """

    text: str
    digest: str
    name: Any = None
    unknown: str = ""

    def record(self) -> dict[str, Any]:
        """Give the identity in a document."""
        return {"is": self.text, "sha256": self.digest, "known": not self.unknown}


@dataclass(frozen=True)
class CycleMethod:
    """A method of no kind known here, by its cycle alone."""

    name: str
    claim: Claim
    cycle: Callable[..., Any]


def as_it_runs(method: Method) -> Method:
    """Give the method, or its cycle alone where it only looks like a kind known here: a subclass may do anything."""
    own = isinstance(method, KINDS) and kind_of(method) is None
    return CycleMethod(method.name, method.claim, method.cycle) if own else method


def kind_of(method: Method) -> Any:
    """TreeMethod, FixedTreeMethod or FunctionMethod where a method is exactly that, with no attribute of its own."""
    for kind in KINDS:
        names = {field.name for field in fields(kind)}
        if type(method) is kind and set(vars(method)) == names:
            return kind
    return None


def identities(method: Method) -> dict[str, Identity]:
    """Give the identity of each part of a method; where it is of no known kind, that of the method itself."""
    kind, given = kind_of(method), vars(method) if hasattr(method, "__dict__") else {}
    if kind is TreeMethod:
        altered = altered_reference()
        return {
            "proxy": _held_to_files(_proxy(given["proxy"]), altered),
            "verify": _held_to_files(_verify(given["verify"]), altered),
        }
    names = {FixedTreeMethod: ("topology", "draft", "verify"), FunctionMethod: ("function",)}.get(kind, ())
    return {name: _user_part(given[name]) for name in names} or {"method": _user_part(method)}


def unknown_parts(method: Method) -> str:
    """Why the parts of a method are not wholly known, "" where they are."""
    return "; ".join(each.unknown for each in identities(method).values() if each.unknown)


def known_tree_method(method: Method) -> bool:
    """Tell whether a method is a tree method all of whose parts are `rheo_core`'s own."""
    if kind_of(method) is not TreeMethod:
        return False
    given = vars(method)
    known = _known_proxy(given["proxy"]) is not None and _known_rule(given["verify"]) is not None
    return known and not altered_reference()


def verifier_name(verify: Any) -> str | None:
    """Give the verification rule of `rheo_core` that a part is, or None."""
    name: str | None = _held_to_files(_verify(verify), altered_reference()).name
    return name


def _held_to_files(identity: Identity, altered: str) -> Identity:
    if identity.unknown or not altered:
        return identity
    return Identity(identity.text, identity.digest, None, f"{altered} is not what its file defines")


def _verify(verify: Any) -> Identity:
    name = _known_rule(verify)
    return _user_part(verify) if name is None else _known(f"rheo_core.verification.{name}", name)


def _known_rule(verify: Any) -> str | None:
    """Give the name of a rule of `rheo_core`, None for any other part."""
    rule = verify
    if type(rule) is partial and not rule.args and not vars(rule):  # the default order may be said again
        default = all(name == "order" and each is verification.in_slot_order for name, each in rule.keywords.items())
        rule = rule.func if default else rule
    return next((name for name in VERIFIERS if rule is getattr(verification, name, None)), None)


def _proxy(proxy: Any) -> Identity:
    found = _known_proxy(proxy)
    return _user_part(proxy) if found is None else _known(*found)


def _known_proxy(proxy: Any) -> tuple[str, Any] | None:
    """(what it is, what the checker calls it) of a proxy of `rheo_core`, None for any other part."""
    if type(proxy) is Constant and set(vars(proxy)) == {"value"} and type(proxy.value) in NUMBERS:
        with long_numbers():
            value = str(fraction(proxy.value))
        return f"rheo_core.proxies.Constant({value})", {"constant": value}
    for name in PROXIES:
        ours: Any = getattr(proxies, name, None)
        if proxy is ours or (type(proxy) is ProxyRule and _same_fields(vars(proxy), vars(ours))):
            return f"rheo_core.proxies.{name}", ours.name
    return None


def _same_fields(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two named proxy rules hold the same function under the same name (a copy that was sent here)."""
    return one.keys() == other.keys() and all(
        each is other[name] or (type(each) in PLAIN and type(each) is type(other[name]) and each == other[name])
        for name, each in one.items()
    )


def _known(text: str, name: Any) -> Identity:
    return Identity(text, digest([text, reference_digest()]), name)


def _user_part(part: Any) -> Identity:
    text = " ".join(_described(part).split())[:400]
    return Identity(text, digest(_lines(part)), None, f"{text} is no rule of rheo_core as it stands there")


def _described(part: Any) -> str:
    """Give a part in words, with what is bound to it."""
    if isinstance(part, partial):
        bound = [*map(_described, part.args), *(f"{name}={_described(each)}" for name, each in part.keywords.items())]
        return f"partial({', '.join([_described(part.func), *bound])})"
    if type(part) in PLAIN:
        return repr(part)[:60]
    name = getattr(part, "__qualname__", None)
    if callable(part) and isinstance(name, str):
        return f"{getattr(part, '__module__', '?')}.{name}"
    return f"a {type(part).__module__}.{type(part).__qualname__}"


def _lines(part: Any) -> Iterator[str]:
    """Code, defaults, closure, attributes and the globals that a part reaches, as lines; each object once."""
    seen: dict[int, Any] = {}
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            yield "seen"
            continue
        yield _described(part)
        if type(part) not in PLAIN:
            seen[id(part)] = part
            own, below = _inside(part)
            yield from own
            waiting += reversed(below)


def _inside(part: Any) -> tuple[list[str], list[Any]]:
    """Lines of a part's own, and what it holds."""
    if isinstance(part, types.CodeType):
        return [f"{part.co_code.hex()} {part.co_names} {part.co_varnames} {part.co_freevars}"], list(part.co_consts)
    if isinstance(part, types.FunctionType):
        reached = [part.__globals__.get(name) for name in part.__code__.co_names]
        return [], [part.__code__, part.__defaults__, part.__kwdefaults__, *_closure(part), part.__dict__, *reached]
    if isinstance(part, Mapping):
        return [], [each for item in part.items() for each in item]
    if isinstance(part, tuple | list):
        return [], list(part)
    if isinstance(part, np.ndarray):
        return [repr(part.tolist())], []
    if isinstance(part, partial):
        return [], [part.func, part.args, part.keywords]
    if isinstance(part, type):
        if part.__module__ in (*sys.builtin_module_names, "typing", "abc"):
            return [], []
        return [], [each for name, each in vars(part).items() if name not in DESCRIPTIVE] + list(part.__bases__)
    if isinstance(part, types.ModuleType | types.BuiltinFunctionType):
        return [], []
    held = [getattr(part, name, None) for name in ("__func__", "__self__", "__dict__", "__wrapped__", "fget")]
    return [], [*held, type(part)]


def _closure(part: types.FunctionType) -> list[Any]:
    held = []
    for cell in part.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return held


def is_ours(part: Any, depth: int = 8) -> bool:
    """Tell whether a part is code of this project with nothing of a user's bound to it, however it calls itself."""
    if type(part) in PLAIN or isinstance(part, np.dtype):
        return True
    if not depth:
        return False
    if type(part) is partial:
        below: list[Any] = [part.func, *part.args, *part.keywords.values(), *vars(part).values()]
    elif isinstance(part, types.FunctionType):
        home = str(part.__globals__.get("__name__"))
        if home.partition(".")[0] not in PACKAGES or part.__globals__ is not vars(sys.modules.get(home, types)):
            return False
        defaults = [*(part.__defaults__ or ()), *(part.__kwdefaults__ or {}).values()]
        below = [*_closure(part), *defaults, *part.__dict__.values()]
    elif isinstance(part, types.MethodType):
        below = [part.__func__, part.__self__]
    elif type(part) in (tuple, list, dict, types.MappingProxyType):
        below = [*part.keys(), *part.values()] if isinstance(part, Mapping) else list(part)
    elif isinstance(part, type):
        home = part.__module__
        return home.partition(".")[0] in PACKAGES and getattr(sys.modules.get(home), part.__qualname__, None) is part
    else:
        below = [type(part), *getattr(part, "__dict__", {}).values()]
    return all(is_ours(each, depth - 1) for each in below)
