"""Followed torch operations against torch itself: random programs of two coins, symbolic and on a full grid of coins.

Constants are dyadic, so every edge lies between two of the grid's middles and the two laws are equal, not merely close.
"""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.interception import torch_law

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact
N = 128


def assigned(x):
    x = x.clone()
    x[..., 0] = x[..., 1]
    return x


def shifted_in_place(x, c):
    x = x.clone()
    view = x[..., 1:]
    view.add_(c)
    return x


def scaled_in_place(x, c):
    x = x.clone()
    x *= c
    return x


quarters = st.integers(-6, 6).map(lambda k: k / 4)
powers = st.sampled_from([0.5, 1.0, 2.0, -0.5, -1.0, -2.0])
vector = st.tuples(quarters, quarters).map(lambda pair: torch.tensor(pair, dtype=torch.float64))
mask = st.tuples(st.booleans(), st.booleans()).map(lambda pair: torch.tensor(pair))

SCALES = {
    "mul": lambda x, c: x * c,
    "rmul": lambda x, c: c * x,
    "div": lambda x, c: x / c,
    "mul_": scaled_in_place,
    "div_": lambda x, c: x.clone().div_(c),
    "torch.mul": lambda x, c: torch.mul(x, torch.tensor([c, 1.0], dtype=torch.float64)),
}
SHIFTS = {
    "add": lambda x, c: x + c,
    "radd": lambda x, c: c + x,
    "sub": lambda x, c: x - c,
    "rsub": lambda x, c: c - x,
    "add_": shifted_in_place,
    "clamp": lambda x, c: x.clamp(min=c),
    "clamp max": lambda x, c: torch.clamp(x, max=c),
    "clamp both": lambda x, c: x.clamp(c, c + 1),
    "clamp_": lambda x, c: x.clone().clamp_(min=c),
    "fill": lambda x, c: x.masked_fill(torch.tensor([True, False]), c),
    "set": lambda x, c: torch.where(torch.tensor([False, True]), x, torch.tensor(c, dtype=torch.float64)),
}
MOVES = {
    "flip": lambda x: x.flip(-1),
    "index": lambda x: x[..., [1, 0]],
    "mask": lambda x: x[..., torch.tensor([1, 1])],
    "roll": lambda x: x.roll(1, -1),
    "cat": lambda x: torch.cat([x, x * 2], dim=-1)[..., 1:3],
    "stack": lambda x: torch.stack([x[..., 1], x[..., 0]], dim=-1),
    "unbind": lambda x: torch.stack(list(reversed(x.unbind(-1))), dim=-1),
    "unsqueeze": lambda x: x.unsqueeze(-1).transpose(-1, -2).squeeze(-2),
    "gather": lambda x: x.gather(-1, torch.tensor([1, 0]).expand(x.shape)),
    "view": lambda x: x.reshape(-1).view(x.shape).contiguous().detach(),
    "expand": lambda x: x[..., :1].expand(*x.shape[:-1], 2),
    "assign": assigned,
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "floor": lambda x: x.floor(),
    "double": lambda x: x.to(torch.float64).double(),
    "chunk": lambda x: torch.cat(x.chunk(2, -1)[::-1], dim=-1),
    "log exp": lambda x: x.exp().log(),
    "max of both": lambda x: torch.maximum(x, torch.tensor([0.25, 0.5], dtype=torch.float64)),
    "min of both": lambda x: torch.minimum(torch.tensor([0.25, 0.5], dtype=torch.float64), x),
}
step = st.one_of(
    st.tuples(st.sampled_from(sorted(SCALES)), powers),
    st.tuples(st.sampled_from(sorted(SHIFTS)), quarters),
    st.tuples(st.sampled_from(sorted(MOVES)), st.none()),
)
QUESTIONS = {
    "lt": lambda x, t: x < t,
    "le": lambda x, t: torch.le(x, t),
    "gt": lambda x, t: t < x,
    "ge": lambda x, t: x.ge(t),
    "eq": lambda x, t: x == t,
    "ne": lambda x, t: x != t,
    "long": lambda x, t: x.long(),
    "search": lambda x, t: torch.searchsorted(torch.tensor([-0.5, 0.25, 0.75], dtype=torch.float64), x, right=t > 0),
    "bucket": lambda x, t: torch.bucketize(x, torch.tensor([0.25, 0.5], dtype=torch.float64)),
}


def run(x, path, questions):
    for name, c in path:
        if c is None:
            x = MOVES[name](x)
        else:
            x = (SCALES.get(name) or SHIFTS[name])(x, c)
    return torch.cat([QUESTIONS[name](x, t).long() for name, t in questions], dim=-1)


MIDDLES = (2 * torch.arange(N, dtype=torch.float64) + 1) / (2 * N)
GRID = torch.cartesian_prod(MIDDLES, MIDDLES)


@settings(max_examples=60)
@given(
    st.lists(step, max_size=4),
    st.lists(st.tuples(st.sampled_from(sorted(QUESTIONS)), quarters), min_size=1, max_size=2),
)
def test_followed_operations_give_the_law_that_torch_gives(path, questions):
    law = torch_law(lambda: run(torch.rand(1, 2, dtype=torch.float64), path, questions)[0])
    values, counts = run(GRID, path, questions).unique(dim=0, return_counts=True)
    expected = {tuple(row): Fraction(n, N * N) for row, n in zip(values.tolist(), counts.tolist(), strict=True)}
    assert law == expected


@settings(max_examples=40)
@given(st.lists(step, max_size=3), st.integers(0, 1))
def test_the_largest_of_two_maps_of_one_coin(path, which):
    """argmax and max where both numbers come from one coin: settled by comparing them."""

    def program(x):
        x = run_path(x[..., :1].expand(*x.shape[:-1], 2) * torch.tensor([1.0, -1.0], dtype=torch.float64), path)
        return x.argmax(-1) if which else x.min(-1).indices

    def run_path(x, path):
        for name, c in path:
            x = SCALES[name](x, c) if name in SCALES else SHIFTS[name](x, c) if c is not None else x
        return x

    path = [(name, c) for name, c in path if name in SCALES or name in ("add", "radd", "sub", "rsub")]
    law = torch_law(lambda: program(torch.rand(1, 2, dtype=torch.float64)).item())
    values, counts = program(GRID).unique(return_counts=True)
    assert law == {v: Fraction(n, N * N) for v, n in zip(values.tolist(), counts.tolist(), strict=True)}
