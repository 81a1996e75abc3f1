"""The float types that rows of probabilities are computed in, whatever type a model computes in."""

from __future__ import annotations

import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float64)


def in_float(logits: Tensor) -> Tensor:
    """Logits in float32 or better."""
    return logits if logits.dtype in FLOATS else logits.to(torch.float32)
