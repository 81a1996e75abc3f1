"""Every small change of a module's source: operators, comparisons, constants, calls, conditions, dropped lines.

Left out on purpose: what cannot change a law or an acceptance. That is annotations, docstrings, the text of errors, and
guards (an `if` whose only statement raises), which refuse input and alter none.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}

Change = Callable[[Any], None]


@dataclass(frozen=True)
class Mutant:
    """One change of one module. `key` names it without line numbers, so that it outlives edits elsewhere."""

    path: Path
    key: str
    line: int
    number: int
    change: Change

    @property
    def place(self) -> str:
        """The qualified name of the function or class that is changed."""
        return self.key.partition("::")[2].partition(":")[0]

    def code(self) -> ast.Module:
        """The changed module."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        self.change(list(ast.walk(tree))[self.number])
        return ast.fix_missing_locations(tree)

    @property
    def module(self) -> str:
        """The module's dotted name."""
        return ".".join(self.path.with_suffix("").parts)


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of the module at a path relative to the repository, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    places = _places(tree)
    seen: dict[str, int] = {}
    for number, node in sorted(enumerate(nodes), key=lambda item: getattr(item[1], "lineno", 0)):
        if node not in places:
            continue
        for what, change in changes(node):
            key = f"{path}::{places[node]}: {what}"
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1:
                key = f"{key} ({seen[key]})"
            yield Mutant(path, key, getattr(node, "lineno", 0), number, change)


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """(description, change in place) of every mutation at one node."""
    if isinstance(node, ast.Compare):
        for i, comparison in enumerate(node.ops):
            yield _replaced(node, _with_comparison(i, COMPARISONS[type(comparison)]))
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        yield _replaced(node, _with_operator(OPERATORS[type(node.op)]))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield _replaced(node, lambda n: setattr(n, "op", ast.UAdd()))
    elif isinstance(node, ast.BoolOp):
        yield _replaced(node, _with_operator(ast.Or if isinstance(node.op, ast.And) else ast.And))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield _replaced(node, lambda n: setattr(n, "value", not n.value))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield _replaced(node, lambda n: setattr(n, "value", n.value + 1))
    elif isinstance(node, ast.Call) and _name(node.func) in CALLS:
        yield _replaced(node, _renamed)
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield f"condition negated: {_short(node.test)}", lambda n: setattr(n, "test", _negated(n.test))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield f"filter dropped: {_short(node.ifs[0])}", lambda n: n.ifs.clear()
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            for i, statement in enumerate(block):
                if _is_dropped(statement) and not isinstance(node, ast.Module):
                    yield f"line dropped: {_short(statement)}", _without_line(field, i)


def _with_comparison(i: int, new: type[ast.cmpop]) -> Change:
    return lambda node: node.ops.__setitem__(i, new())


def _with_operator(new: type[ast.operator] | type[ast.boolop]) -> Change:
    return lambda node: setattr(node, "op", new())


def _without_line(field: str, i: int) -> Change:
    return lambda node: getattr(node, field).__setitem__(i, ast.Pass())


def _is_dropped(statement: ast.stmt) -> bool:
    """Whether dropping a statement is a mutation: calls, assignments, yields, returns, jumps, and whole blocks."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.If):
        return not _is_guard(statement)
    return isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Break, ast.Continue, ast.For, ast.While))


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and not node.orelse and all(isinstance(each, ast.Raise) for each in node.body)


def _places(tree: ast.Module) -> dict[ast.AST, str]:
    """The qualified name around every node that may be mutated."""
    found: dict[ast.AST, str] = {}

    def visit(node: ast.AST, name: str) -> None:
        if isinstance(node, ast.ClassDef) and any(_name(base) == "Protocol" for base in node.bases):
            return
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.Assert)) or _is_guard(node):
            return
        inside = name
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            inside = f"{name}.{node.name}".lstrip(".")
        found[node] = inside or "module"
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "bases", "keywords_of_class"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child, inside)

    visit(tree, "")
    return found


def _replaced(node: ast.AST, change: Callable[..., None]) -> tuple[str, Change]:
    twin = copy.deepcopy(node)
    change(twin)
    return f"{_short(node)} -> {_short(ast.fix_missing_locations(twin))}", change


def _renamed(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)
    if isinstance(node.func, ast.Name):
        node.func.id = CALLS[node.func.id]
    elif isinstance(node.func, ast.Attribute):
        node.func.attr = CALLS[node.func.attr]


def _negated(test: ast.expr) -> ast.expr:
    return (
        test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else ast.UnaryOp(ast.Not(), test)
    )


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"
