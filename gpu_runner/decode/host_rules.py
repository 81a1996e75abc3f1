"""A user's own verification or proxy rule on real models: run on the host, on the rows of the device.

A rule written for rheo_core gets the rows that the engine has, as NumPy arrays, and a chooser that passes its coins and
draws to the engine's. It costs a copy of the rows at each visited node (a proxy: at each level), so tau is right and
the speed is not what a rule of the device's own would have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gpu_runner.decode.draws import Draws
from rheo_core import InvalidInput
from rheo_core.checks import check_id
from rheo_core.pool import Proxy
from rheo_core.verification import Place, Verdict

OWN_ADDRESS = 1 << 20
"""Places of coins and draws for which the rule gave no address."""


class HostVerify:
    """A verification rule of rheo_core's signature as the engine calls one."""

    def __init__(self, rule: Callable[..., Verdict]) -> None:
        self.rule = rule

    def __call__(
        self,
        p: Tensor,
        tail: Tensor | None,
        candidates: Sequence[int],
        sampled: int,
        lead: int,
        draws: Draws,
        at: Place,
    ) -> Verdict:
        """The rule's verdict, checked against the candidates as in rheo_core."""
        rows = (p.cpu().numpy(), None if tail is None else tail.cpu().numpy())
        token, child = self.rule(*rows, candidates, sampled, lead, _Addressed(draws, at, p.device), at)
        token = check_id(token, len(p), "token emitted by verify")
        if child != -1 and (not 0 <= child < len(candidates) or candidates[child] != token):
            raise InvalidInput("child", child, f"-1 or the index of token {token} among the candidates {candidates}")
        return token, int(child)


class _Addressed:
    """The engine's draws as a rheo_core chooser; calls without an address get one of their own."""

    def __init__(self, draws: Draws, at: Place, device: torch.device) -> None:
        self.draws = draws
        self.at = at
        self.device = device
        self.calls = 0

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        return self.draws.accept(float(probability), self._address("coin", at))

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        row = torch.from_numpy(np.array(weights, dtype=np.float64)).to(self.device)
        return self.draws.index(row, self._address("emit", at))

    def _address(self, kind: str, at: Any) -> tuple[Any, ...]:
        if at is not None:
            return tuple(at)
        self.calls += 1
        return (kind, *self.at, OWN_ADDRESS + self.calls)


def host_proxy(proxy: Proxy) -> Callable[[Tensor, Tensor, int, Tensor], Tensor]:
    """A proxy rule of rheo_core's signature for all parents of a level."""

    def scores(score: Tensor, order: Tensor, m: int, sampled: Tensor) -> Tensor:
        full = np.argsort(-score.cpu().numpy(), axis=-1, kind="stable")
        rows = zip(score.cpu().numpy(), full, sampled.tolist(), strict=True)
        values = [float(proxy(row, ranks, m, token)) for row, ranks, token in rows]
        for value in values:
            if not 0 <= value <= 1:
                raise InvalidInput("proxy", value, "a score in [0, 1] (above 1 a child would outrank its parent)")
        return torch.tensor(values, dtype=score.dtype, device=score.device)

    return scores
