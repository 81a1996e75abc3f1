"""The probability rows of `rheo_core.laws`, on a torch device and many rows at a time.

Every function mirrors one of rheo_core and states where the numbers could differ: on the CPU sums run left to right in
float64 and are rounded once, as there, so results are equal to the bit; on CUDA the order of a sum is the device's own.
Nothing here waits for the device: what the host needs to know is read by the caller.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from gpu_runner.model.precision import FLOATS
from rheo_core import InvalidInput
from rheo_core.checks import check_temperature


def total(values: Tensor) -> Tensor:
    """Sum over the last dimension, accumulated in float64 and rounded once to the rows' own type.

    >>> total(torch.tensor([[0.5, 0.25], [1.0, 2.0]])).tolist()
    [0.75, 3.0]
    """
    wide = values.to(torch.float64)
    added = wide.sum(-1) if values.is_cuda else wide.cumsum(-1)[..., -1]
    return added.to(values.dtype)


def normalise(weights: Tensor) -> Tensor:
    """norm(w) = w / sum(w) along the last dimension; rows without mass become NaN (the caller asks `total` first)."""
    return weights / total(weights)[..., None]


def excess(p: Tensor, q: Tensor) -> Tensor:
    """max(0, p - q): the unnormalised residual (Algorithm 1, line 8)."""
    return (p - q).clamp(min=0)


def zeroed(row: Tensor, token: int) -> Tensor:
    """`row` [V] with the entry of `token` set to 0, not renormalised."""
    result = row.clone()
    result[token].fill_(0)  # an assigned number would be copied from the host, which waits for it
    return result


def softmax(logits: Tensor, temperature: float = 1) -> Tensor:
    """softmax(logits / temperature) along the last dimension, in the logits' type; rows of -inf alone become NaN.

    At temperature 0 all mass lies on the maximum of lowest position.

    >>> softmax(torch.tensor([[1.0, 1.0, 0.0]]), 0).tolist()
    [[1.0, 0.0, 0.0]]
    """
    check_temperature(temperature)
    largest = logits.max(-1, keepdim=True).values
    if temperature == 0:
        weights = torch.zeros_like(logits).scatter_(-1, first(logits == largest)[..., None], 1)
    else:
        weights = normalise(torch.exp((logits - largest) / temperature))
    return weights.masked_fill(largest == -torch.inf, torch.nan)


def first(flags: Tensor) -> Tensor:
    """Position of the first True along the last dimension; the last position where there is none."""
    size = flags.shape[-1]
    places = torch.arange(size, device=flags.device)
    return torch.where(flags, places, size - 1).amin(-1)


def rank(scores: Tensor) -> Tensor:
    """Positions of `scores` [n] by falling score, equal scores in the order given: the stable key of all ranking."""
    return scores.argsort(dim=-1, descending=True, stable=True)


def best(score: Tensor, k: int) -> Tensor:
    """Ids of the k largest entries of each row of `score` [n, V], falling, equal entries by lower id: [n, k].

    torch.topk alone breaks ties as it likes. Here it only finds the k-th value; of the entries equal to it the lowest
    ids are taken, which needs neither a full sort nor a look from the host.

    >>> best(torch.tensor([[0.2, 0.3, 0.2, 0.3]]), 3).tolist()
    [[1, 3, 0]]
    """
    size = score.shape[-1]
    if k >= size:
        return rank(score)
    least = score.topk(k, dim=-1).values[:, -1:]
    above, equal = score > least, score == least
    spare = k - above.sum(-1, keepdim=True)
    chosen = above | (equal & (equal.cumsum(-1) <= spare))
    place = torch.where(chosen, chosen.cumsum(-1) - 1, k)
    ids = torch.arange(size, device=score.device).expand_as(place)
    rising = torch.empty(len(score), k + 1, dtype=torch.long, device=score.device).scatter_(-1, place, ids)[:, :k]
    return rising.gather(-1, rank(score.gather(-1, rising)))


def position(weights: Tensor, u: Tensor) -> Tensor:
    """Inverse of the distribution function: positions [n] of positive weight (0 where a row has none).

    For each row of `weights` [n, S] and u [n] in [0, 1): the first position whose cumulative weight exceeds u times the
    row's sum, as in `rheo_core.SamplingChooser`.
    """
    cumulative = weights.to(torch.float64).cumsum(-1)
    held = weights > 0
    reached = held & (u[:, None] * cumulative[:, -1:] < cumulative)
    places = torch.arange(weights.shape[-1], device=weights.device)
    last = torch.where(held, places, 0).amax(-1)
    return torch.where(reached.any(-1), first(reached), last)


def check_rows(rows: Tensor, name: str) -> Tensor:
    """`rows` as [n, V] float32 or float64; anything else is refused."""
    if rows.ndim != 2 or rows.dtype not in FLOATS or not rows.shape[-1]:
        raise InvalidInput(name, f"{rows.dtype} {tuple(rows.shape)}", "float32 or float64 rows [n, V]")
    return rows


def check_int(value: object, least: int, name: str, otherwise: str = "") -> int:
    """`value` as an int; raises unless it is an int of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (Integral, np.integer)) or value < least:
        raise InvalidInput(name, value, f"an int of at least {least}{otherwise}")
    return int(value)
