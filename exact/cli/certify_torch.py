"""`rheo-exact certify --torch path.py:function`: the verdict on a function as it stands in a file.

The file says what is right: a name `target` beside the function (or another one, by option) holds the law, the row, the
sampler or, with a name `length`, the model that `certify_function` takes.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

from exact.cli import options
from exact.enumeration.exits import Stop
from exact.enumeration.walk import EnumerationError, TooManyDraws, TooManyOutcomes, format_mass
from exact.interception.decoders import certify_decoder, is_decoder
from exact.interception.function_certificate import FunctionCertificate, to_json_value
from exact.interception.narrow_inputs import declared_type
from exact.interception.session import Coins, covered
from exact.interception.torch_law import Interception
from exact.interception.verdict import certify_function
from exact.methods.load import load_module, named_in, own_ends
from exact.report import function_page
from exact.runtime import atomic_files
from rheo_core import InvalidInput
from rheo_core.checks import check_count

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
LIMIT = 100_000
SECONDS = 600.0


@dataclass(frozen=True)
class RunLimits:
    """How long a function may be followed: outcomes, and seconds of time (0: no limit)."""

    outcomes: int = LIMIT
    seconds: float = SECONDS

    def __post_init__(self) -> None:
        check_count("limit", self.outcomes, 0)
        if not 0 <= self.seconds < math.inf:
            raise InvalidInput("seconds", self.seconds, "a number of at least 0 (0: no limit)")

    @property
    def limit(self) -> int | None:
        """The outcomes, or None."""
        return self.outcomes or None


class FunctionOutOfTime(EnumerationError):
    """More time than was given; what was enumerated until then is said."""

    def __init__(self, seconds: float, mass: Fraction | None) -> None:
        held = "" if mass is None else f" (the runs enumerated hold {format_mass(mass)} of the mass)"
        super().__init__(f"not done after {seconds:g} s{held}; --seconds gives it more, 0 lifts the limit")


class _Alarm(Stop):
    """The end of the time; no `except Exception` of the code under test takes it for its own."""


@contextmanager
def timed(seconds: float) -> Iterator[None]:
    """Raise `FunctionOutOfTime` after so many seconds, wherever the code is (0, or without such signals: never)."""
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[Fraction | None] = []

    def ring(number: int, frame: FrameType | None) -> None:
        held.append(covered())
        raise _Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # and again each second, should the code swallow it
    try:
        yield
    except _Alarm:
        raise FunctionOutOfTime(seconds, held[0]) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def certify_file(
    spec: str,
    target: str | None = None,
    coins: str = "ideal",
    bounds: RunLimits | None = None,
    dtype: str | None = None,
    eps: float | None = None,
) -> tuple[FunctionCertificate | None, dict[str, Any]]:
    """Give the verdict on `path.py:function` or `package.module:function`, and the JSON document of the run.

    A decoder (an object with `start` and `step`, or a class of them) is certified by its texts: `target(prefix) -> row`
    and `length` stand in the file, and `prompt`, `end` (ids that end a text), `batch = True` for a list of prompts.
    Anything else is called; its arguments are the names of its parameters in the file. The
    right law is the name `target` there (the option gives another name); `one_cycle = True` says that the function is
    one cycle of a decoder, whose short results go on; `length`, where the file has it, is the number of tokens
    compared. Without a target the verdict is None and the document holds the law alone.
    """
    path, _, name = spec.rpartition(":")
    if not name.isidentifier() or not (path.endswith(".py") or MODULE.fullmatch(path)):
        raise InvalidInput("torch", spec, "path.py:function or package.module:function")
    if coins not in ("ideal", "grid"):
        raise InvalidInput("coins", coins, "'ideal' or 'grid'")
    declared_type(dtype, eps)
    kind: Coins = "grid" if coins == "grid" else "ideal"
    module = load_module(path, "torch")
    function, names = named_in(module, path, name, "torch"), vars(module)
    if inspect.isclass(function) and is_decoder(function):
        with own_ends(spec, "a class of decoders that is made without an argument"):
            function = function()
    decodes = is_decoder(function)
    if not callable(function) and not decodes:
        raise InvalidInput(spec, function, "a function, or a decoder with start and step")
    function, given = (function, []) if decodes else called_with(function, names, spec)
    if target is not None and target not in names:
        raise InvalidInput("target", f"{path}:{target}", "a name that the file defines")
    right = names.get("target" if target is None else target)
    bounds = bounds or RunLimits()
    document: dict[str, Any] = {"command": "certify", "torch": spec}
    try:
        with own_ends(spec, "a function that runs on every branch"), timed(bounds.seconds):
            if decodes:
                asked: dict[str, Any] = text_of(names, right, spec)
                asked |= {"coins": kind, "limit": bounds.limit, "dtype": dtype, "eps": eps}
                certificate = certify_decoder(function, **asked)
                return certificate, document | certificate.document()
            if right is None:
                law = Interception(kind, bounds.limit).law(function, *given)
                rows = [[to_json_value(key), str(mass), float(mass)] for key, mass in law.items()]
                return None, document | {"lossless": None, "verdict": "no target", "law": rows}
            certificate = certify_function(
                function,
                *given,
                target=right,
                length=names.get("length"),
                coins=kind,
                limit=bounds.limit,
                dtype=dtype,
                eps=eps,
                one_cycle=names.get("one_cycle"),
            )
    except (TooManyOutcomes, TooManyDraws) as error:
        raise EnumerationError(f"{error}; --limit N allows N outcomes, 0 any number and runs of any length") from None
    return certificate, document | certificate.document()


def text_of(names: Mapping[str, Any], target: Any, spec: str) -> dict[str, Any]:
    """What a file says of a decoder's text: `length`, and where they are there `prompt`, `end`, `batch`."""
    if not callable(target) or "length" not in names:
        lacking = "without `length`" if callable(target) else "without a function `target`"
        raise InvalidInput(
            spec, f"a decoder {lacking}", "a function target(prefix) -> row and a number `length` in the file"
        )
    return {"target": target} | {name: names[name] for name in ("prompt", "length", "end", "batch") if name in names}


def called_with(
    function: Callable[..., Any], names: Mapping[str, Any], spec: str
) -> tuple[Callable[..., Any], list[Any]]:
    """What is called, and its arguments: the file's values of the names of its parameters that have no default."""
    given, by_name = [], dict[str, Any]()
    for parameter in inspect.signature(function).parameters.values():
        if (
            parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            or parameter.default is not parameter.empty
        ):
            continue
        if parameter.name not in names:
            expected = f"a name `{parameter.name}` in the file, or a default, for each parameter"
            raise InvalidInput(spec, f"{inspect.signature(function)} without `{parameter.name}`", expected)
        if parameter.kind is parameter.KEYWORD_ONLY:
            by_name[parameter.name] = names[parameter.name]
        else:
            given.append(names[parameter.name])
    return (functools.partial(function, **by_name) if by_name else function), given


def report(certificate: FunctionCertificate | None, document: dict[str, Any]) -> str:
    """What the command prints."""
    if certificate is not None:
        return str(certificate)
    lines = [f"P({key}) = {mass} = {value:.9g}" for key, mass, value in document["law"]]
    return "\n".join([*lines, "no `target` in the file: the law alone, no verdict"])


def exit_code(certificate: FunctionCertificate | None) -> int:
    """0 lossless, 1 lossy, 3 undecided."""
    if certificate is None or certificate.lossless is None:
        return options.UNDECIDED
    return options.LOSSLESS if certificate.lossless else options.LOSSY


def run(
    spec: str,
    target: str | None = None,
    coins: str = "ideal",
    bounds: RunLimits | None = None,
    as_json: bool = False,
    save: Path | None = None,
    page: Path | None = None,
    dtype: str | None = None,
    eps: float | None = None,
) -> int:
    """Certify the function, print the verdict or the JSON document, write it or the page if asked; the exit code."""
    with options.err.status(f"every outcome of {spec}") if options.err.is_terminal else nullcontext():
        certificate, document = certify_file(spec, target, coins, bounds, dtype, eps)
    if not as_json:
        options.out.print(report(certificate, document), highlight=False, markup=False)
    options.deliver(document, as_json, save)
    if page is not None:
        law = {_key(key): Fraction(mass) for key, mass, _ in document["law"]}
        made = function_page(spec, certificate, law, options.provenance(), target or "target")
        atomic_files.save_text(page, made, "report")
    return exit_code(certificate)


def _key(result: Any) -> Any:
    """Give a result of a JSON document as it was: lists are tuples."""
    return tuple(map(_key, result)) if isinstance(result, list) else result
