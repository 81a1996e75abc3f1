"""Which cell an outcome falls into, for laws too wide to count outcome by outcome.

Sequences are counted one by one where they are likely and together where they are not; anything else is mapped to
[0, 1) by the randomised probability integral transform, which is uniform exactly when the law is right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from montecarlo.pairs import Batch, Ints
from rheo_core.models import Prefix

Floats = NDArray[np.float64]


LIMIT = 512
ROW_NUMBERS = 2**22
"""Numbers in the rows that are held at once while cells are made."""


class SequenceCells:
    """Cells for the first `length` tokens after `prefix`, with exact probabilities.

    At each position the likeliest continuations of the sequences followed so far are followed further (at most LIMIT,
    fewer for large vocabularies); the others of each sequence share one cell. `probabilities` [cells] sums to 1.
    """

    def __init__(self, targets: Callable[[Ints], Batch], prefix: Prefix, length: int) -> None:
        self._keys: list[Ints] = []
        self._first_cell: list[int] = []
        nodes = np.array([prefix], dtype=np.int64).reshape(1, -1)
        mass = np.ones(1)
        parts: list[Floats] = []
        cells = 0
        for _ in range(length):
            rows = targets(nodes).astype(np.float64)
            rows /= rows.sum(axis=1, keepdims=True)
            self.vocabulary = rows.shape[1]
            limit = min(LIMIT, max(16, ROW_NUMBERS // self.vocabulary))
            joint = mass[:, None] * rows
            keys = np.sort(np.argsort(-joint, axis=None, kind="stable")[:limit])
            node, token = np.divmod(keys, self.vocabulary)
            kept = joint.reshape(-1)[keys]
            joint[node, token] = 0
            self._keys.append(keys)
            self._first_cell.append(cells)
            parts.append(joint.sum(axis=1))
            cells += len(mass)
            nodes, mass = np.concatenate([nodes[node], token[:, None]], axis=1), kept
        self._first_cell.append(cells)
        self.probabilities = np.concatenate([*parts, mass])
        self.probabilities /= self.probabilities.sum()

    def __len__(self) -> int:
        return len(self.probabilities)

    def of(self, tokens: Ints) -> Ints:
        """The cell [n] of each of `tokens` [n, >= length]."""
        node = np.zeros(len(tokens), dtype=np.int64)
        cell = np.full(len(tokens), -1, dtype=np.int64)
        for position, keys in enumerate(self._keys):
            wanted = node * self.vocabulary + tokens[:, position]
            place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            followed = keys[place] == wanted
            cell = np.where((cell < 0) & ~followed, self._first_cell[position] + node, cell)
            node = place
        return np.where(cell < 0, self._first_cell[-1] + node, cell)


def transform(rows: Batch, ranking: Batch, entry: Ints, v: Floats) -> Floats:
    """Randomised probability integral transform [n] of entry `entry` [n] of laws `rows` [n, k].

    Entries are ordered by falling `ranking` [n, k], equal ones by place: the mass ahead of the entry plus v times its
    own. Uniform on [0, 1) when the entry was drawn from its row and v [n] is uniform.
    """
    index = np.arange(len(rows))
    own = ranking[index, entry][:, None]
    ahead = (ranking > own) | ((ranking == own) & (np.arange(rows.shape[1]) < entry[:, None]))
    mass = rows.sum(axis=1, dtype=np.float64)
    return np.asarray(((rows * ahead).sum(axis=1, dtype=np.float64) + v * rows[index, entry]) / mass)


def equal_cells(values: Floats, cells: int) -> Ints:
    """The cell [n] of values in [0, 1) among `cells` equal ones."""
    return np.minimum((values * cells).astype(np.int64), cells - 1)
