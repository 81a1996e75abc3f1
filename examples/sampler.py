"""Speculative sampling in torch as it stands in many decoders, to be certified without a change.

rheo-exact certify --torch examples/sampler.py:step
"""

import torch

p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.3, 0.5])
target = p


def step():
    """Draft one token from q; accept it, or draw from the residual."""
    token = torch.multinomial(q, 1)
    if torch.rand(1) < p[token] / q[token]:
        return token
    residual = (p - q).clamp(min=0)
    return torch.multinomial(residual / residual.sum(), 1)
