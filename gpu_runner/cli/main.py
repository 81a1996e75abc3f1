"""`gpu_runner`: the identical algorithm on real models."""

from __future__ import annotations

from exact.cli import agreement
from exact.cli.application import application

app = application(
    "gpu_runner",
    "RheoSampling and the methods it is compared with, on real models: benchmarked, drawn, certified.",
    "gpu_runner.cli",
    {
        "assisted": "Compare with transformers' generate(assistant_model=...): the same pair, questions, counting and "
        "clock.",
        "audit": "Audit a method on a real pair: every emitted token against the target's own law. 1: evidence of "
        "loss, 0: none.",
        "bench": "Compare methods on a real pair: tau, acceptance by depth, tokens a second, speed-up, latencies.",
        "certify": "Certify the engine itself: drafting, pruning, verification, cache and several cycles, on this "
        "device.",
        "check": "Look at a pair before long runs: weights, template, RoPE, layers read, vocabularies, memory, time of "
        "a table.",
        "data": "Say where the question sets come from and under which licences; fetch them; check a folder of sets.",
        "reproduce": "Measure a table or figure of the paper on any pair: counted on own texts, and expected on the "
        "same contexts.",
        "rows": "Write next-token logits of your own pair of models, for rheo-exact to certify methods on.",
        "train": "Train an EAGLE-3 head: one layer, training-time test, soft targets; official layout, loaded by "
        "--draft FOLDER.",
        "tree": "Draw the draft trees of a real pair: slots, path scores, sampled nodes, what was accepted and "
        "emitted.",
    },
)


def main() -> None:
    """Entry point of the command `gpu_runner`."""
    agreement.main(app, "gpu_runner.cli.main", alone=True)
