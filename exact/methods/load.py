"""Methods by name: the catalogue's, or a user's own as `path.py:name`.

Naming a file runs its code. What is found there may be a Method, a verification rule (it then gets one lead and the
paper's proxy), or a cycle function marked with `@rheo_core.method`.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from exact.enumeration.exits import Ended, EnumerationError, contained, told
from exact.methods import methods
from exact.runtime.pickling import PLUGIN, travels_by_name
from exact.runtime.streams import seclude
from rheo_core import InvalidInput, Method, TreeMethod

VERIFY_ARGUMENTS = 7


def load_method(spec: str, known: Mapping[str, Method] = methods) -> Method:
    """Give the method of a registered name or of `path.py:name`. Raises `InvalidInput` where there is none."""
    if spec in known:
        return known[spec]
    path, _, name = spec.rpartition(":")
    if path in known:
        raise InvalidInput("method", spec, f"a lead as an option of its own: {path} --lead {name}")
    if not path.endswith(".py") or not name:
        if spec.endswith((".py", ".py:")):
            raise InvalidInput("method", spec, f"path.py:name, as in {spec.rstrip(':')}:verify")
        raise InvalidInput("method", guessed(spec, known), f"one of {', '.join(known)}; or path.py:name")
    return as_method(load_name(path, name), spec, name)


def guessed(given: str, known: Iterable[str]) -> str:
    """Give a wrong name, with the known one that was probably meant."""
    names = {name.lower().lstrip("-"): name for name in known}
    near = difflib.get_close_matches(given.lower().lstrip("-"), names, 1, cutoff=0.7)
    return f"{given} (did you mean {names[near[0]]}?)" if near else given


def as_method(found: Any, spec: str, name: str) -> Method:
    """Give a method, a verification rule as a method, or `InvalidInput` that says what `spec` is instead."""
    if not inspect.isclass(found) and callable(getattr(found, "cycle", None)) and hasattr(found, "name"):
        return found  # type: ignore[no-any-return]
    if callable(found) and _takes(found, VERIFY_ARGUMENTS):
        return TreeMethod(name, None, lead=1, verify=found)
    raise InvalidInput(
        spec,
        signature(found),
        "a Method, a verify function (p, tail, candidates, sampled, lead, chooser, at), or a cycle function marked "
        "with @rheo_core.method",
    )


def signature(found: Any) -> Any:
    """Give a function as its name with its arguments, for a message; anything else as it is."""
    return f"{found.__name__}{inspect.signature(found)}" if inspect.isfunction(found) else found


def load_name(path: str, name: str, what: str = "method") -> Any:
    """Give the object called `name` in the Python file at `path`, which is run; `what` asked for it."""
    return named_in(load_module(path, what), path, name, what)


def named_in(module: ModuleType, path: str, name: str, what: str) -> Any:
    """Give the object called `name` of a user's module."""
    if not hasattr(module, name):
        public = [each for each in vars(module) if not each.startswith("_")]
        listed = ", ".join(public) or "nothing"
        raise InvalidInput(what, f"{path}:{guessed(name, public)}", f"a name that the file defines ({listed})")
    return getattr(module, name)


def load_module(path: str, what: str) -> ModuleType:
    """Give the module of a user's Python file, run anew, or of a dotted name, imported as from the current folder.

    While it runs the file's own folder comes first on the path, as when Python runs it; afterwards last, for what its
    functions import.
    """
    if not path.endswith(".py"):
        with own_ends(path, "a module that is imported without an error"), first_on_path(Path.cwd()):
            seclude()
            return importlib.import_module(path)
    file = Path(path)
    if not file.is_file():
        raise InvalidInput(what, path, "an existing Python file")
    module_name = f"{PLUGIN}{file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise InvalidInput(what, path, "a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    seclude()
    with own_ends(path, "a file that runs without an error"), first_on_path(file.resolve().parent):
        spec.loader.exec_module(module)
    return module


@contextmanager
def first_on_path(folder: Path) -> Iterator[None]:
    """Let modules of a folder be imported before all others, and afterwards still, after all others."""
    place = str(folder)
    before = place in sys.path
    sys.path.insert(0, place)
    try:
        yield
    finally:
        sys.path.remove(place)
        if not before and place not in sys.path:
            sys.path.append(place)


@contextmanager
def own_errors(method: Method) -> Iterator[None]:
    """Turn an exception raised inside a user's own rule into `InvalidInput` that names rule, error, line and branch."""
    if not is_own(method):
        with contained(method.name):
            yield
        return
    with own_ends(method.name, "a rule that runs on every branch"):
        yield


@contextmanager
def own_ends(name: str, expected: str) -> Iterator[None]:
    """Turn whatever the user's code raises into `InvalidInput`, the ends of a program among it."""
    try:
        with contained(name):
            yield
    except Ended as error:
        raise Ended(name, error.value, expected) from error
    except (InvalidInput, EnumerationError):
        raise
    except Exception as error:
        raise InvalidInput(name, told(error), expected) from error


def is_own(method: Method) -> bool:
    """Tell whether a method, or a part of it, comes from a user's file."""
    found = [method, *(getattr(method, name, None) for name in ("function", "verify", "proxy", "draft"))]
    modules = [str(getattr(each, "__module__", "")) for part in found for each in (part, type(part))]
    return any(module.startswith(PLUGIN) for module in modules)


def with_lead(method: Method, lead: int | None) -> Method:
    """The same tree method with another m; None leaves it as it is."""
    if lead is None:
        return method
    if not isinstance(method, TreeMethod) or method.lead is None:
        raise InvalidInput("lead", lead, f"no --lead with {method.name}, which has no lead to set")
    return dataclasses.replace(method, lead=lead)


def label(method: Method) -> str:
    """Give the method's name with its m, as the commands print it."""
    return (
        f"{method.name} m={method.lead}" if isinstance(method, TreeMethod) and method.lead is not None else method.name
    )


def _takes(function: Any, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def by_name(key: str | tuple[str, str]) -> Any:
    """The method of a name, or what a user's file (path, name) defines: how another process finds what it is sent."""
    return methods[key] if isinstance(key, str) else load_name(*key)


def _named() -> Iterator[tuple[Hashable, Any]]:
    """Yield the registered methods, and where cloudpickle cannot send it by value, what the user's files define."""
    yield from methods.items()
    if importlib.util.find_spec("cloudpickle") is None:
        for module in [each for name, each in sys.modules.items() if name.startswith(PLUGIN)]:
            for name, each in vars(module).items():
                if callable(each) or hasattr(each, "cycle"):
                    yield (str(module.__file__), name), each


travels_by_name(__name__, _named)
