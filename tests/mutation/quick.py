"""A part of the certificate that starts at once: some of its tests called without pytest around them."""

from __future__ import annotations

from itertools import product


def check() -> None:
    """The second implementation's laws, then every fault's; the first difference raises."""
    from exact.faults import cases
    from tests.exact.test_faults import test_the_law_is_exactly_the_one_given, test_the_verdict_is_the_label
    from tests.exact.test_second_implementation import CASES, compare
    from tests.pairs import HAND_MADE

    for models, case in product(HAND_MADE, CASES):
        compare(models, *case)
    for key, fault in cases.items():
        test_the_verdict_is_the_label(key)
        if fault.law is not None:
            test_the_law_is_exactly_the_one_given(key)
