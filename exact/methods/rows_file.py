"""Rows files: a target and a draft as recorded next-token rows.

JSON with `contexts`, keyed by ids joined by "," (the empty key is the empty prefix, "*" every prefix not listed). Each
context holds `target_logits` or `target`, and `draft_logits` or `draft`: lists of numbers, or of "a/b" strings for
laws. Optional `ids` maps draft ids to target ids. Optional `vocabulary` lists the target's tokens, each a
string or an object with a string `text`, by which pictures call them. Everything else in the file is ignored.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from exact.enumeration.rationals import converted_row, exact_law, parse_number
from rheo_core import DraftRow, InvalidInput
from rheo_core.checks import check_count, check_law, check_temperature
from rheo_core.laws import Row, normalise, softmax, zeroed
from rheo_core.models import Prefix

ARITHMETICS = ("rational", "float64", "float32", "float16")
Context = Mapping[str, Any]

MOST_BYTES = 2**28
"""What a rows file may hold: rows of a tiny vocabulary need far less."""


@dataclass(frozen=True)
class Rows:
    """The contexts of one file, read at a temperature, a support size and an arithmetic.

    "rational" takes every float row as its row over its exact sum. `target` and `draft` can be handed to `certify`;
    a prefix that the file lacks is refused by name.
    """

    name: str
    contexts: Mapping[Prefix | None, Context]
    ids: tuple[int, ...] | None = None
    temperature: float = 1
    support: int | None = None
    arithmetic: str = "rational"
    names: tuple[str, ...] | None = None

    def target(self, prefix: Prefix) -> Row:
        """Give the target distribution at `prefix`: softmax of its logits at the temperature, or the law as listed."""
        context = self._context(prefix)
        if "target_logits" in context:
            logits = self._floats(context["target_logits"])
            return self._law(softmax(logits, self.temperature, self._where("target_logits", prefix)))
        return self._law(self._listed(context["target"], self._where("target", prefix)))

    def draft(self, prefix: Prefix) -> Row | DraftRow:
        """Give the draft row at `prefix`; a plain distribution where temperature and support change nothing."""
        context = self._context(prefix)
        if "draft_logits" in context:
            logits = self._floats(context["draft_logits"])
            where = self._where("draft_logits", prefix)
            if self.temperature == 1 and (self.support is None or self.support >= np.isfinite(logits).sum()):
                return self._law(softmax(logits, 1, where))
            row = DraftRow.logits(logits, self.temperature, self.support)
            return converted_row(row, exact_law) if self.arithmetic == "rational" else row
        law = self._law(self._listed(context["draft"], self._where("draft", prefix)))
        if self.support is None or self.support >= len(law):
            return law
        order = DraftRow.law(law).order
        return DraftRow.pair(law, normalise(zeroed(law, order[self.support :].tolist())))

    def state(self, prefix: Prefix) -> Prefix | str:
        """What tells the rows at and below a prefix: itself where a context is listed there, "*" everywhere else."""
        return prefix if prefix in self._listed_above else "*"

    @cached_property
    def _listed_above(self) -> frozenset[Prefix]:
        """Every prefix at or below which a context is listed by name."""
        listed = [context for context in self.contexts if context is not None]
        return frozenset(context[:end] for context in listed for end in range(len(context) + 1))

    def _where(self, field: str, prefix: Prefix) -> str:
        return f"{self.name}: context {_key(prefix)!r}: {field}"

    def _context(self, prefix: Prefix) -> Context:
        context = self.contexts.get(prefix, self.contexts.get(None))
        if context is None:
            reach = max(len(listed or ()) for listed in self.contexts)
            known = f"the file has prefixes of up to {reach} tokens; a smaller depth asks for shorter ones"
            expected = f'a context of that key, or one of key "*" ({known})'
            raise InvalidInput(f"{self.name}: prefix", _key(prefix) or "the empty one", expected)
        return context

    def _floats(self, values: list[Any]) -> Row:
        """Logits in the arithmetic; one that it cannot hold is refused, not made infinite."""
        dtype = np.dtype(np.float64 if self.arithmetic == "rational" else self.arithmetic)
        most = float(np.finfo(dtype).max)
        for value in values:
            if abs(value) > most and abs(value) != math.inf:
                raise InvalidInput(f"{self.name}: logit", value, f"a number within the range of {dtype}")
        return np.array(values, dtype=dtype)

    def _listed(self, values: list[Any], where: str) -> Row:
        if self.temperature != 1:
            raise InvalidInput("temperature", self.temperature, f"1: {where} is a law, not logits")
        if any(isinstance(value, str) for value in values):
            return check_law([_rational(value, where) for value in values], where)
        if all(isinstance(value, int) for value in values):
            return check_law(values, where)
        return check_law(np.array(values, dtype=np.float64), where)

    def _law(self, law: Row) -> Row:
        if self.arithmetic == "rational":
            return exact_law(law)
        return law.astype(self.arithmetic)


def read_rows(
    path: Path | str, temperature: float = 1, support: int | None = None, arithmetic: str = "rational"
) -> Rows:
    """Read a rows file. Raises `InvalidInput`, naming the file and the entry, on anything that is not one."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)  # a device such as /dev/zero has no end
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("rows file", str(path), f"a readable file ({_reason(error)})") from None
    if len(data) > MOST_BYTES:
        raise InvalidInput("rows file", str(path), f"at most {MOST_BYTES} bytes")
    return parse_rows(text, file.stem, temperature, support, arithmetic)


def shipped_rows(temperature: float = 1, support: int | None = None, arithmetic: str = "rational") -> list[Rows]:
    """The five real pairs that come with the package: SmolLM2-135M-Instruct and the same model without two layers."""
    folder = resources.files("exact") / "data" / "rows"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return [
        parse_rows(file.read_text(encoding="utf-8"), file.name.removesuffix(".json"), temperature, support, arithmetic)
        for file in files
    ]


def parse_rows(
    text: str, name: str, temperature: float = 1, support: int | None = None, arithmetic: str = "rational"
) -> Rows:
    """Rows from the text of a file; `name` is used in messages."""
    if arithmetic not in ARITHMETICS:
        raise InvalidInput("arithmetic", arithmetic, f"one of {', '.join(ARITHMETICS)}")
    try:
        document = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, name))
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"rows file {name}", text.strip()[:40] or "an empty file", f"JSON ({error})") from None
    if support is not None:
        check_count("support", support, 1)
    check_temperature(temperature)
    listed = document.get("contexts") if isinstance(document, dict) else None
    if not isinstance(listed, dict) or not listed:
        given = f"an object of {list(document)}" if isinstance(document, dict) else type(document).__name__
        raise InvalidInput(f"rows file {name}", given, 'an object with a non-empty object "contexts"')
    contexts: dict[Prefix | None, Context] = {}
    for key, context in listed.items():
        prefix = _prefix(key, name)
        if prefix in contexts:
            raise InvalidInput(f"{name}: context", key, "each prefix once")
        contexts[prefix] = _checked(context, key, name)
        size = len(contexts[prefix].get("target", contexts[prefix].get("target_logits", ())))
        if any(token >= size for token in prefix or ()):
            raise InvalidInput(f"{name}: context", key, f"ids of its own vocabulary, 0..{size - 1}")
    ids = document.get("ids")
    if ids is not None and not (isinstance(ids, list) and all(type(value) is int for value in ids)):
        raise InvalidInput(f"{name}: ids", ids, "a list of target ids")
    mapped = None if ids is None else tuple(ids)
    texts = _texts(document.get("vocabulary"), size, name)
    return Rows(name, contexts, mapped, temperature, support, arithmetic, texts)


def _texts(vocabulary: Any, size: int, name: str) -> tuple[str, ...] | None:
    """Give the texts of all tokens; None where the file does not tell them. Nothing is computed from them."""
    if vocabulary is None:
        return None
    where = f"{name}: vocabulary"
    if not isinstance(vocabulary, list):
        raise InvalidInput(where, type(vocabulary).__name__, "a list of texts, one for each token of the target")
    if len(vocabulary) != size:
        raise InvalidInput(where, f"{len(vocabulary)} entries", f"{size}, one for each token of the target")
    texts = []
    for token, each in enumerate(vocabulary):
        text = each.get("text") if isinstance(each, dict) else each
        if not isinstance(text, str):
            raise InvalidInput(f"{where}[{token}]", each, 'a string, or an object with a string "text"')
        texts.append(text)
    return tuple(texts)


def _prefix(key: str, name: str) -> Prefix | None:
    if key == "*":
        return None
    if key and re.fullmatch(r"(0|[1-9][0-9]{0,17})(,(0|[1-9][0-9]{0,17}))*", key) is None:
        raise InvalidInput(f"{name}: context", key, 'token ids joined by ",", or "*"')
    return tuple(int(part) for part in key.split(",")) if key else ()


def _object(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    """Give a JSON object, refused where it lists a key twice: the earlier value would be lost."""
    listed: dict[str, Any] = {}
    for key, value in pairs:
        if key in listed:
            raise InvalidInput(f"{name}: key", key or '""', "each key once")
        listed[key] = value
    return listed


def _checked(context: Any, key: str, name: str) -> Context:
    for side in ("target", "draft"):
        forms = [form for form in (side, f"{side}_logits") if isinstance(context, dict) and form in context]
        where = f"{name}: context {key!r}"
        if len(forms) != 1:
            raise InvalidInput(where, forms or "neither", f"exactly one of {side} and {side}_logits")
        values = context[forms[0]]
        allowed = (int, float) if forms[0].endswith("logits") else (int, float, str)
        if not isinstance(values, list) or not values:
            raise InvalidInput(f"{where}: {forms[0]}", values, "a non-empty list")
        for position, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, allowed):
                expected = "a number" if str not in allowed else 'a number or an "a/b" string'
                raise InvalidInput(f"{where}: {forms[0]}[{position}]", value, expected)
    return context  # type: ignore[no-any-return]


def _rational(value: int | float | str, where: str) -> Fraction:
    try:
        return parse_number(value) if isinstance(value, str) else Fraction(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InvalidInput(where, value, 'a number or an "a/b" string, b not 0') from None


def _key(prefix: Prefix) -> str:
    return ",".join(str(token) for token in prefix)


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or "not UTF-8 text").lower()
