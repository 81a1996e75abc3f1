"""Rows files of a user's own pair of models: real next-token logits over a tiny vocabulary.

The tokens that the target ranks highest after a prompt become a vocabulary of their own; both models are read at every
prefix of these tokens. `rheo-exact certify --rows` then certifies methods on that very pair, exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gpu_runner.decode.engine import Engine, tree_mask
from gpu_runner.decode.laws import best, check_int
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.chat import tokenizer_of
from gpu_runner.model.drafts.base import Draft
from rheo_core import InvalidInput, TreeMethod, TreeShape, methods

MOST_CONTEXTS = 20_000


def rows_document(
    target: CausalModel, draft: Draft, prompt: Sequence[int], tokens: int = 5, levels: int = 3
) -> dict[str, Any]:
    """The document of a rows file: logits of `tokens` tokens at all prefixes of 0..levels of them after `prompt`.

    Where the draft has a vocabulary of its own, `ids` maps those of its tokens that are among the chosen ones.
    """
    check_size(tokens, levels)
    if tokens > target.vocabulary:
        raise InvalidInput("tokens", tokens, f"at most the {target.vocabulary} tokens of {target.name}")
    method = methods["top-k"]
    assert isinstance(method, TreeMethod)
    engine = Engine(target, draft, method, TreeShape(1, 1, 1))
    session = engine.start(prompt)
    engine.catch_up(session)
    device = target.device
    text = torch.tensor(session.tokens, device=device)
    with torch.no_grad():
        root = session.draft.root(text, session.features)
        chosen = _likeliest(engine, text, tokens)
        drafted = _draft_levels(session.draft, root, chosen, levels)
        read = _target_levels(engine, session.cache, text, chosen, levels)
    known = {
        int(token): j for j, token in enumerate(range(target.vocabulary) if draft.ids is None else draft.ids.tolist())
    }
    shared = [i for i, token in enumerate(chosen.tolist()) if token in known]
    if not shared:
        raise InvalidInput("draft vocabulary", draft.name, "at least one of the chosen tokens in it")
    columns = torch.tensor([known[int(chosen[i])] for i in shared], device=device)
    tokenizer = tokenizer_of(target) if target.tokenizer is not None else None
    return {
        "target": target.name,
        "draft": draft.name,
        "vocabulary": [
            {"token_id": token, "text": tokenizer.decode([token]) if tokenizer else None} for token in chosen.tolist()
        ],
        "depth": levels,
        **({} if len(shared) == tokens and draft.ids is None else {"ids": shared}),
        "contexts": {
            ",".join(map(str, prefix)): {
                "target_logits": p[chosen].tolist(),
                "draft_logits": q[columns].tolist(),
                "target_log_normaliser": float(p.logsumexp(-1)),
                "draft_log_normaliser": float(q.logsumexp(-1)),
            }
            for prefix, p, q in zip(_prefixes(tokens, levels), read, drafted, strict=True)
        },
    }


def check_size(tokens: int, levels: int) -> None:
    """Raise unless the prefixes of 0..`levels` of `tokens` tokens are not too many: a check that needs no model."""
    check_int(tokens, 2, "tokens")
    check_int(levels, 1, "levels")
    contexts = 0
    for level in range(levels + 1):
        contexts += tokens**level
        if contexts > MOST_CONTEXTS:
            raise InvalidInput(
                "contexts", f"more than {MOST_CONTEXTS}", f"at most {MOST_CONTEXTS}: fewer --tokens or --levels"
            )


def _prefixes(tokens: int, levels: int) -> list[tuple[int, ...]]:
    """All prefixes, level by level, each level in lexicographic order."""
    return [prefix for level in range(levels + 1) for prefix in itertools.product(range(tokens), repeat=level)]


def _likeliest(engine: Engine, text: Tensor, tokens: int) -> Tensor:
    """The ids [tokens] that the target ranks highest after `text`."""
    session = engine.start(text.tolist())
    engine.catch_up(session)
    past = len(text) - 1
    visible = torch.ones(1, past + 1, dtype=torch.bool, device=text.device)
    logits, _ = engine.target(text[-1:], torch.tensor([past], device=text.device), visible, session.cache)
    return best(logits, tokens)[0]


def _draft_levels(session: Any, root: Tensor, chosen: Tensor, levels: int) -> Tensor:
    """The draft's logits at all prefixes [contexts, draft V]."""
    found, width = [root], len(chosen)
    for _ in range(levels):
        parents = torch.arange(len(found[-1]), device=chosen.device).repeat_interleave(width)
        found.append(session.expand(chosen.repeat(len(found[-1])), parents))
    return torch.cat(found)


def _target_levels(engine: Engine, cache: Any, text: Tensor, chosen: Tensor, levels: int) -> Tensor:
    """The target's logits at all prefixes [contexts, V]: one forward over the complete tree."""
    width, device = len(chosen), text.device
    sizes = [width**level for level in range(levels + 1)]
    starts = [sum(sizes[:level]) - 1 for level in range(levels + 1)]  # rows of the nodes; the root is -1
    parent = torch.cat(
        [starts[level - 1] + torch.arange(sizes[level], device=device) // width for level in range(1, levels + 1)]
    )
    depth = torch.cat([torch.full((sizes[level],), level, device=device) for level in range(levels + 1)])
    tokens = torch.cat([text[-1:], *(chosen.repeat(sizes[level - 1]) for level in range(1, levels + 1))])
    past = len(text) - 1
    tree = tree_mask(parent)
    visible = torch.cat([tree.new_ones(len(tree), past), tree], dim=-1)
    logits, _ = engine.target(tokens, past + depth, visible, cache)
    return logits
