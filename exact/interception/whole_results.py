"""A result whose last number nobody read: one run that stands for all the values of a row."""

from __future__ import annotations

from typing import Any, NamedTuple

from exact.enumeration.read_ints import ReadInt
from exact.enumeration.whole_rows import WholeRow


class WholeResult(NamedTuple):
    """A result, nested tuples with 0 at `path`, that stands for those with each number of a row there."""

    template: Any
    path: tuple[int, ...]
    row: WholeRow

    def placed(self, token: int) -> Any:
        """The result with one number in its place."""
        return _put(self.template, self.path, token)


def _put(value: Any, path: tuple[int, ...], token: int) -> Any:
    if not path:
        return token
    i = path[0]
    return (*value[:i], _put(value[i], path[1:], token), *value[i + 1 :])


def unread_paths(value: Any) -> list[tuple[int, ...]]:
    """Where numbers of this kind stand in nested tuples."""
    if issubclass(type(value), ReadInt):
        return [()]
    if type(value) is not tuple:
        return []
    return [(i, *path) for i, each in enumerate(value) for path in unread_paths(each)]
