"""`rheo-exact`: certify, refute and explore, exactly."""

from __future__ import annotations

import sys

from exact.cli import certify, check, classes, compare, faults, hunt, options, prove, rates, table1
from exact.cli.application import application

app = application(
    "rheo-exact",
    "Is a speculative decoder lossless, and how much does it accept? Exact answers on tiny vocabularies.",
    *(certify, check, classes, compare, faults, hunt, prove, rates, table1),
)


def main() -> None:
    """Entry point of the command `rheo-exact`."""
    sys.exit(options.run(app))


if __name__ == "__main__":
    main()
