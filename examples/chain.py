"""A whole cycle in one function: draft one token, accept it or draw from the residual.

rheo-exact certify examples/chain.py:chain --width 1 --depth 1 --budget 1 --cycles 2
"""

from rheo_core import method


@method(claim="lossless")
def chain(target, draft, prefix, shape, chooser):
    """Emit an accepted token and the target's own, or a token of the residual."""
    p, q = target(prefix), draft(prefix)
    token = chooser.index(q)
    if chooser.accept(min(1, p[token] / q[token])):
        return [token, chooser.index(target((*prefix, token)))]
    residual = [max(0, a - b) for a, b in zip(p, q, strict=True)]
    return [chooser.index([x / sum(residual) for x in residual])]
