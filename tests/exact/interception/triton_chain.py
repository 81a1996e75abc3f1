"""A small Triton kernel of our own: chain rejection of two drafted tokens, with coins as inputs.

A coin below the acceptance threshold of its position keeps the token; the first that is not ends the chain, and the
last coin draws from the cumulated residual of that position, or from the bonus row. One program verifies a block of
requests. Planted faults are chosen by number: `<=` for `<`, the residual of the wrong position, and the bonus row
drawn from where a token was rejected.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
triton = pytest.importorskip("triton", reason="triton is not installed (no wheel for this platform)")

import triton.language as tl  # noqa: E402

LESS_OR_EQUAL, WRONG_ROW, BONUS_ROW = 1, 2, 3
BLOCK = 256


@triton.jit
def chain_rejection(
    coins,  # [N, depth + 1]
    thresholds,  # [depth]
    cumulated,  # [depth + 1, vocabulary]
    drafted,  # [depth]
    out,  # [N, depth + 1]
    requests,  # N
    depth: tl.constexpr,
    vocabulary: tl.constexpr,
    fault: tl.constexpr,
    block: tl.constexpr,
):
    """Emitted tokens of each request; what follows the last one is left as it was."""
    request = tl.program_id(0) * block + tl.arange(0, block)
    inside = request < requests
    start = request * (depth + 1)
    alive = tl.full((block,), 1, tl.int32)
    accepted = tl.full((block,), 0, tl.int32)
    for position in range(depth):
        coin = tl.load(coins + start + position, mask=inside, other=0.0)
        threshold = tl.load(thresholds + position)
        if fault == 1:
            keep = coin <= threshold
        else:
            keep = coin < threshold
        alive = tl.where(keep, alive, 0)
        tl.store(out + start + position, tl.load(drafted + position), mask=inside & (alive == 1))
        accepted += alive
    row = accepted
    if fault == 2:
        row = tl.where(accepted == 0, 1, accepted)
    if fault == 3:
        row = accepted * 0 + depth
    coin = tl.load(coins + start + depth, mask=inside, other=0.0)
    token = tl.full((block,), 0, tl.int32)
    for v in range(vocabulary - 1):
        edge = tl.load(cumulated + row * vocabulary + v)
        token += tl.where(coin >= edge, 1, 0)
    tl.store(out + start + accepted, token, mask=inside)


def run(coins, thresholds, cumulated, drafted, fault=0, device="cpu"):
    """Emitted tokens, a tuple for each row of `coins`."""
    u = torch.from_numpy(np.ascontiguousarray(coins)).to(device)
    count, depth, vocabulary = len(u), len(drafted), cumulated.shape[1]
    out = torch.full((count, depth + 1), -1, dtype=torch.int32, device=device)
    tensors = [torch.as_tensor(x).to(device) for x in (thresholds, cumulated, drafted)]
    grid = (triton.cdiv(count, BLOCK),)
    chain_rejection[grid](u, *tensors, out, count, depth, vocabulary, fault, BLOCK)
    return [tuple(token for token in row if token >= 0) for row in out.tolist()]
