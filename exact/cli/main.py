"""`rheo-exact`: certify, refute and explore, exactly."""

from __future__ import annotations

from exact.cli import agreement
from exact.cli.application import application

app = application(
    "rheo-exact",
    "Is a speculative decoder lossless, and how much does it accept? Exact answers on tiny vocabularies.",
    "exact.cli",
    {
        "certify": "Certify methods as lossless on given rows, or refute them with a counterexample.",
        "check": "Recompute every derived figure of a certificate from its recorded inputs.",
        "classes": "Print the classes of pruned trees with their probabilities, the most probable first (method: "
        "rheo).",
        "compare": "Compare methods on the same rows: verdict, exact acceptance, gap to the optimum of their own "
        "drafts.",
        "faults": "Run known faults as exact cases: each refuted with the law it has, each false alarm certified.",
        "hunt": "Hunt for the smallest counterexample of METHOD.",
        "methods": "List the methods that can be named: source, what each claims, how it drafts.",
        "prove": "Prove the paper's claims for every target and draft, or refute them with a witness.",
        "rates": "Print acceptance rates: one pool in closed form (--target, --draft), or rows of a file with "
        "sweeps of m and T.",
        "table1": "Reproduce Table 1: pool rankings, surviving tokens, and the resulting law of the next token.",
    },
)


def main() -> None:
    """Entry point of the command `rheo-exact`."""
    agreement.main(app, "exact.cli.main")


if __name__ == "__main__":
    main()
