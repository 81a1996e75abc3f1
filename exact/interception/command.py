"""`rheo-exact certify --torch path.py:function`: the verdict on a function as it stands in a file.

The file says what is right: a name `target` beside the function (or another one, by option) holds the law, the row, the
sampler or, with a name `length`, the model that `certify_function` takes.
"""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from exact.commands import options
from exact.interception.replay import Interception
from exact.interception.session import Coins
from exact.interception.verdict import FunctionCertificate, certify_function, plain
from exact.outcomes import EnumerationError
from exact.plugins import load_name
from rheo_core import InvalidInput


def certify_file(
    spec: str, target: str | None = None, coins: str = "ideal", limit: int | None = None
) -> tuple[FunctionCertificate | None, dict[str, Any]]:
    """The verdict on `path.py:function`, a function of no argument, and the JSON document of the run.

    The right law is the name `target` in the same file (the option gives another name); `length`, where the file has
    it, is the number of tokens compared. Without a target the verdict is None and the document holds the law alone.
    """
    path, _, name = spec.rpartition(":")
    if not path.endswith(".py") or not name:
        raise InvalidInput("torch", spec, "path.py:function")
    if coins not in ("ideal", "grid"):
        raise InvalidInput("coins", coins, "'ideal' or 'grid'")
    kind: Coins = "grid" if coins == "grid" else "ideal"
    function = load_name(path, name)
    if not callable(function):
        raise InvalidInput(spec, function, "a function")
    try:
        inspect.signature(function).bind()
    except TypeError:
        raise InvalidInput(spec, str(inspect.signature(function)), "a function of no argument (wrap it)") from None
    names = function.__globals__ if hasattr(function, "__globals__") else {}
    if target is not None and target not in names:
        raise InvalidInput("target", f"{path}:{target}", "a name that the file defines")
    right = names.get("target" if target is None else target)
    document: dict[str, Any] = {"command": "certify", "torch": spec}
    try:
        if right is None:
            law = Interception(kind, limit).law(function)
            rows = [[plain(key), str(mass), float(mass)] for key, mass in law.items()]
            return None, document | {"lossless": None, "verdict": "no target", "law": rows}
        certificate = certify_function(function, target=right, length=names.get("length"), coins=kind, limit=limit)
    except (InvalidInput, EnumerationError):
        raise
    except Exception as error:
        said = "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])
        raise InvalidInput(spec, said, "a function that runs on every branch") from error
    return certificate, document | certificate.document()


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
    limit: int | None = None,
    as_json: bool = False,
    save: Path | None = None,
) -> int:
    """Certify the function, print the verdict or the JSON document, write it to a file if asked; the exit code."""
    with options.err.status(f"every outcome of {spec}") if options.err.is_terminal else nullcontext():
        certificate, document = certify_file(spec, target, coins, limit)
    if not as_json:
        options.out.print(report(certificate, document), highlight=False, markup=False)
    options.deliver(document, as_json, save)
    return exit_code(certificate)
