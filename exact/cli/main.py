"""`rheo-exact`: certify, refute and explore, exactly."""

from __future__ import annotations

from exact.cli import agreement, certify, check, classes, compare, faults, hunt, prove, rates, table1
from exact.cli.application import application

app = application(
    "rheo-exact",
    "Is a speculative decoder lossless, and how much does it accept? Exact answers on tiny vocabularies.",
    *(certify, check, classes, compare, faults, hunt, prove, rates, table1),
)


def main() -> None:
    """Entry point of the command `rheo-exact`."""
    agreement.main(app, "exact.cli.main")


if __name__ == "__main__":
    main()
