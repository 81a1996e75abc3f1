"""The hybrid candidate pools of all parents of a level, as tensors (section 3.2, appendix C.1).

The twin of `rheo_core.pool`: slots 0..m-1 hold the lead tokens, slot m the sampled token Y, the rest the fill tokens;
leads and fills carry q, the sampled slot its proxy. Every parent has the same number of slots, min(K, V), so shapes are
known without asking the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.decode.draft_rows import DraftRows, Tails
from gpu_runner.decode.host_rules import host_proxy
from gpu_runner.decode.laws import total
from rheo_core import FILL, LEAD, SAMPLED, proxies
from rheo_core.pool import Proxy
from rheo_core.proxies import Constant

TorchProxy = Callable[[Tensor, Tensor, int, Tensor], Tensor]
"""proxy(score [n, V], best ids [n, W], m, sampled ids [n]) -> scores [n]."""


def _tail_mass(score: Tensor, order: Tensor, m: int, sampled: Tensor) -> Tensor:
    return total(score.scatter(-1, order[:, :m], 0)).clamp(max=1)


def _rheo(score: Tensor, order: Tensor, m: int, sampled: Tensor) -> Tensor:
    if m == 0:
        return _entry(score, order[:, 0])
    return torch.minimum(_entry(score, order[:, m - 1]), _tail_mass(score, order, m, sampled))


def _entry(score: Tensor, ids: Tensor) -> Tensor:
    return score.gather(-1, ids[:, None])[:, 0]


PROXIES: dict[Proxy, TorchProxy] = {
    proxies.RHEO: _rheo,
    proxies.TAIL_MASS: _tail_mass,
    proxies.NEXT_TOKEN: lambda score, order, m, sampled: _entry(score, order[:, m]),
    proxies.RAW: lambda score, order, m, sampled: _entry(score, sampled),
    proxies.HALF_LEAST: lambda score, order, m, sampled: score.amin(-1) / 2,
}


def torch_proxy(proxy: Proxy) -> TorchProxy:
    """The torch twin of a proxy rule of rheo_core; any other rule is run on the host."""
    if isinstance(proxy, Constant):
        value = float(proxy.value)
        return lambda score, order, m, sampled: score.new_full((len(score),), value)
    return PROXIES[proxy] if proxy in PROXIES else host_proxy(proxy)


@dataclass(frozen=True)
class Slots:
    """The slots of n parents, [n, W] each: draft ids, kinds (0 lead, 1 sampled, 2 fill) and scores."""

    token: Tensor
    kind: Tensor
    score: Tensor


class Pools:
    """The pools of n parents before and after Y is drawn; `tails` is None where none of them has a sampled slot."""

    def __init__(self, rows: DraftRows, width: int, m: int, proxy: TorchProxy) -> None:
        self.rows = rows
        self.m = m
        self.proxy = proxy
        self.size = min(width, rows.score.shape[-1])
        self.score = rows.score.clamp(max=1)  # a float law may hold 1 + eps; as a score it would rise along a path
        self.order = rows.best(self.size)
        self.tails: Tails | None = rows.tails(self.order[:, :m]) if m < self.size else None

    def slots(self, sampled: Tensor | None) -> Slots:
        """The pools in slot order; `sampled` [n] are the tokens drawn from `tails` (ignored where absent)."""
        token, kind = self.order, self._kinds(self.order)
        score = self.score.gather(-1, token)
        if sampled is None or self.tails is None:
            return Slots(token, kind, score)
        has, m = self.tails.present[:, None], self.m
        mixed = torch.cat([token[:, :m], sampled[:, None], self._fills(sampled)], dim=-1)
        scores = self.score.gather(-1, mixed)
        scores[:, m] = self.proxy(self.score, self.order, m, sampled)
        kinds = kind.clone()
        kinds[:, m].fill_(SAMPLED)  # an assigned number would be a constant on the host, which no CUDA graph may hold
        return Slots(torch.where(has, mixed, token), torch.where(has, kinds, kind), torch.where(has, scores, score))

    def _fills(self, sampled: Tensor) -> Tensor:
        """The best tokens outside the lead and Y: [n, W - m - 1]."""
        following = self.order[:, self.m :]
        places = torch.arange(following.shape[-1] - 1, device=following.device)
        behind = torch.cummax((following == sampled[:, None]).long(), dim=-1).values[:, :-1]
        return following.gather(-1, places + behind)

    def _kinds(self, token: Tensor) -> Tensor:
        kind = torch.full_like(token, FILL)
        kind[:, : self.m].fill_(LEAD)
        return kind
