"""`python -m tests.mutation`: mutate, run the certificate, list what survives.

Exit code: 0 iff every survivor is listed in `survivors.py`. A quick part of the certificate runs first; what survives
it and is not listed meets the whole.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.mutation.killing import SURVIVED, Verdict, judge, preload
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.survivors import REASONS, reason

READING = ("softmax",)
"""Functions of laws.py that read rows in; they are no part of a verifier or a tree."""

MODULES = {
    name: Path(f"rheo_core/{name}.py")
    for name in ("verification", "construction", "pool", "tree", "proxies", "laws", "methods")
} | {"growth": Path("rheo_core/growth.py")}
QUICK_SECONDS = 30  # five times what it takes
WHOLE = ("-m", "exact or certificate", "tests")


def main() -> int:
    """Run the harness."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--module", action="append", choices=MODULES, help="only this module; repeatable")
    parser.add_argument("--quick", action="store_true", help="stop after the quick part")
    parser.add_argument("--only", default="", help="only mutants whose key contains this text")
    parser.add_argument("--again", type=Path, help="only what survived in a run that was saved to this file")
    parser.add_argument("--seconds", type=int, default=600, help="processor time of one run of the certificate")
    parser.add_argument("--save", type=Path, help="write the verdicts to a JSON file")
    options = parser.parse_args()
    preload()
    for arguments in [None] if options.quick else [None, WHOLE]:
        if judge(None, arguments, options.seconds)[0] != SURVIVED:
            print(f"the unchanged program fails {arguments or 'the quick part'}", file=sys.stderr)
            return 2
    before = None if options.again is None else survivors_of(options.again)
    chosen = [
        mutant
        for name in options.module or MODULES
        for mutant in mutants(MODULES[name])
        if options.only in mutant.key and (before is None or mutant.key in before)
        if not (name == "laws" and mutant.place in READING)
    ]
    verdicts = [run(mutant, options.quick, options.seconds, f"{i}/{len(chosen)}") for i, mutant in enumerate(chosen, 1)]
    return report(verdicts, options.save)


def survivors_of(saved: Path) -> set[str]:
    """Keys of the mutants that survived in a saved run."""
    entries = json.loads(saved.read_text(encoding="utf-8"))["mutants"]
    return {entry["mutant"] for entry in entries if entry["outcome"] == SURVIVED}


def run(mutant: Mutant, quick: bool, seconds: int, number: str) -> Verdict:
    """The quick part; then the whole certificate, for what survives it and is not explained."""
    outcome, spent = judge(mutant, None, min(seconds, QUICK_SECONDS))
    if outcome == SURVIVED and not quick and reason(mutant.key) is None:
        outcome, more = judge(mutant, WHOLE, seconds)
        spent += more
    print(f"{number} {outcome} {spent:.1f}s {mutant.key} (line {mutant.line})", flush=True)
    return Verdict(mutant, outcome, spent)


def report(verdicts: list[Verdict], save: Path | None) -> int:
    """Print the count and the survivors with their reasons."""
    survivors = [verdict.mutant for verdict in verdicts if verdict.survived]
    unknown = [mutant for mutant in survivors if reason(mutant.key) is None]
    stale = [verdict.mutant for verdict in verdicts if not verdict.survived and reason(verdict.mutant.key)]
    print(f"\n{len(verdicts)} mutants, {len(verdicts) - len(survivors)} killed, {len(survivors)} survive")
    for mutant in survivors:
        print(f"  {mutant.key}\n      {reason(mutant.key) or 'UNEXPLAINED'}")
    for mutant in stale:
        print(f"  listed as a survivor, but killed: {mutant.key}")
    print(f"{len(unknown)} unexplained; {len(REASONS)} reasons on record")
    if save is not None:
        entries = [
            {"mutant": verdict.mutant.key, "outcome": verdict.outcome, "seconds": round(verdict.seconds, 2)}
            for verdict in verdicts
        ]
        save.write_text(json.dumps({"mutants": entries}, indent=2) + "\n", encoding="utf-8")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
