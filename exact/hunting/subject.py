"""The method that is hunted, in a form that can be sent to another process and recognised again.

A name or `path.py:name` travels as it is and is loaded where it arrives; an object travels pickled. The digest tells
two subjects apart, so that a journal of one hunt is never continued with another method.
"""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from exact import catalogue
from exact.hunting.tries import Block, Tried, Trier, with_lead
from exact.plugins import PLUGIN, as_method, load_method
from exact.sending import kept, pack, unpack
from rheo_core import Method, TreeMethod, find_method


@dataclass(frozen=True)
class Subject:
    """A method and, where it was given by name, that name."""

    method: Method
    spec: str | None = None
    given: Any = None

    @classmethod
    def of(cls, given: Any) -> Subject:
        """A method by itself or by a name of the catalogue, a verification rule, or either as `path.py:name`."""
        if isinstance(given, str):
            return cls(load_method(given), given)
        if callable(given) and not hasattr(given, "cycle"):
            name = getattr(given, "__name__", "rule")
            return cls(as_method(given, name, name), given=given)
        return cls(find_method(given), given=given)

    @cached_property
    def source(self) -> str:
        """Where a test can find the method: the name it was given by, or one under which a module holds it; else ""."""
        if self.spec is not None:
            return self.spec
        if with_lead(catalogue.methods.get(self.method.name), 0) == with_lead(self.method, 0):
            return self.method.name
        places = [
            (module, name)
            for module in list(sys.modules.values())
            for name, held in _held(module)
            if held is self.given
        ]
        for module, name in sorted(places, key=lambda place: (len(place[0].__name__), place[1])):
            own_file = module.__name__ == "__main__" or module.__name__.startswith(PLUGIN)
            return f"{module.__file__ if own_file else module.__name__}:{name}"
        return ""

    @property
    def has_leads(self) -> bool:
        """Whether the number of leads m can be chosen."""
        return isinstance(self.method, TreeMethod) and self.method.lead is not None

    @cached_property
    def trier(self) -> Trier:
        """The trier of this process."""
        return Trier(self.method)

    @cached_property
    def packed(self) -> str | bytes:
        """What is sent to another process: a file's rule by value where it can be, as that may run elsewhere."""
        by_name = self.spec is not None and (":" not in self.spec or find_spec("cloudpickle") is None)
        return self.spec if by_name and self.spec is not None else pack(self.method)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the name, with the file's text where it is one, or of the pickled object."""
        if self.spec is None:
            return hashlib.sha256(pack(self.method)).hexdigest()
        path = self.spec.rpartition(":")[0]
        text = Path(path).read_bytes() if path else b""
        return hashlib.sha256(self.spec.encode() + b"\0" + text).hexdigest()


def _held(module: ModuleType) -> list[tuple[str, Any]]:
    """What a module that comes from a file holds by name."""
    return list(vars(module).items()) if getattr(module, "__file__", None) else []


def trier_of(packed: str | bytes) -> Trier:
    """This thread's trier of a packed method; what it has computed is kept from job to job."""
    return kept(packed, lambda: Trier(load_method(packed) if isinstance(packed, str) else unpack(packed)))


def try_block(packed: str | bytes, deadline: float, block: Block) -> Tried:
    """One block of cases, as a job."""
    return trier_of(packed).block(block, deadline)
