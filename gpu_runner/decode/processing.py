"""The target law: temperature, top-k and top-p applied to the target's logits.

One object serves the autoregressive baseline, the verification of every node and the bonus token, so all of them use
the same law; it is that law, not the raw softmax, that losslessness refers to.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.decode.laws import check_int, check_rows, softmax
from rheo_core import InvalidInput
from rheo_core.checks import check_temperature


@dataclass(frozen=True)
class Processing:
    """Temperature, then top-k (ties with the k-th logit stay), then top-p, in transformers' order.

    At temperature 0 all mass lies on the maximum of lowest id.

    >>> Processing(top_k=1).law(torch.tensor([[0.0, 2.0, 1.0]])).tolist()
    [[0.0, 1.0, 0.0]]
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        check_temperature(self.temperature)
        if self.top_k is not None:
            check_int(self.top_k, 1, "top_k", ", or None")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InvalidInput("top_p", self.top_p, "a number in (0, 1], or None")

    def law(self, logits: Tensor) -> Tensor:
        """The laws [n, V] of `logits` [n, V], in their type (float32 or float64)."""
        check_rows(logits, "logits")
        if self.temperature == 0:
            return softmax(logits, 0)
        scaled = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = scaled.topk(self.top_k, dim=-1).values[:, -1:]
            scaled = scaled.masked_fill(scaled < least, -torch.inf)
        if self.top_p is not None and self.top_p < 1:
            rising, ids = scaled.sort(dim=-1, stable=True)
            dropped = softmax(rising).cumsum(-1) <= 1 - self.top_p
            dropped[:, -1].fill_(False)
            scaled = scaled.masked_fill(torch.zeros_like(dropped).scatter_(-1, ids, dropped), -torch.inf)
        return softmax(scaled)
