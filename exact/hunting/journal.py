"""A journal of finished blocks: one JSON line each, written as it comes, so that an interrupted hunt goes on.

The first line names the subject by its digest; a journal of another method, or of a file that has changed since, is
refused. A last line cut short by a crash is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

from exact.hunting.cases import Case, Law, Level, Model
from exact.hunting.process import Refusals
from exact.hunting.tries import Block, Tried
from rheo_core import InvalidInput, TreeShape

FORMAT = 1


class Journal:
    """Finished blocks by what they are; on disk where a path is given."""

    def __init__(self, path: Path | None = None, digest: str = "") -> None:
        self.path = path
        self.known: dict[Block, Tried] = {}
        if path is not None:
            self._open(path, {"format": FORMAT, "subject": digest})

    def _open(self, path: Path, head: Mapping[str, Any]) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
            whole = [line for line in lines if line.endswith("\n")]
            records = [json.loads(line) for line in whole]
            if records and records[0] != head:
                raise InvalidInput("resume", str(path), "a journal of this method as it is now, or a new file")
            self.known = dict(_read(record) for record in records[1:])
            path.write_text("".join(whole) or json.dumps(head) + "\n", encoding="utf-8")
        except OSError as error:
            raise InvalidInput("resume", str(path), f"a file that can be written ({error.strerror})") from None
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
            raise InvalidInput("resume", str(path), "a journal that a hunt wrote") from None

    def add(self, block: Block, tried: Tried) -> None:
        """Note a finished block."""
        if block in self.known:
            return
        self.known[block] = tried
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(_written(block, tried)) + "\n")


def _written(block: Block, tried: Tried) -> dict[str, Any]:
    level = block.level
    return {
        "level": [level.vocabulary, asdict(level.shape), level.lead, level.dependent, level.denominator],
        "first": block.first,
        "computed": tried.computed,
        "too_large": tried.too_large,
        "refusals": asdict(tried.refusals),
        "found": None if tried.found is None else case_record(tried.found),
    }


def _read(record: Mapping[str, Any]) -> tuple[Block, Tried]:
    vocabulary, shape, lead, dependent, denominator = record["level"]
    level = Level(vocabulary, TreeShape(**shape), lead, dependent, denominator)
    found = None if record["found"] is None else case_of(record["found"])
    refusals = Refusals(**record["refusals"])
    return Block(level, record["first"]), Tried(True, record["computed"], record["too_large"], refusals, found)


def case_record(case: Case) -> dict[str, Any]:
    """A case as a JSON object, masses as "a/b" strings."""
    return {
        "shape": asdict(case.shape),
        "lead": case.lead,
        "target": _model_record(case.target),
        "draft": _model_record(case.draft),
    }


def case_of(record: Mapping[str, Any]) -> Case:
    """The case that `case_record` wrote."""
    target, draft = _model_of(record["target"]), _model_of(record["draft"])
    return Case(target, draft, TreeShape(**record["shape"]), record["lead"])


def _model_record(model: Model) -> dict[str, list[str]]:
    listed = {",".join(map(str, prefix)): _strings(law) for prefix, law in model.listed.items()}
    return {"*": _strings(model.default), **listed}


def _model_of(record: Mapping[str, list[str]]) -> Model:
    laws = {key: tuple(Fraction(mass) for mass in law) for key, law in record.items()}
    listed = {tuple(int(part) for part in key.split(",") if part): law for key, law in laws.items() if key != "*"}
    return Model(laws["*"], listed)


def _strings(law: Law) -> list[str]:
    return [str(mass) for mass in law]
