"""A part of the certificate that starts at once: some of its tests called without pytest around them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

AWKWARD = ("table-1", "ties across parents", "one-hot draft", "zeros apart", "two tokens", "four tokens")


def check() -> None:
    """The second implementation's laws, trees by address, and every fault's law; the first difference raises."""
    from exact.faults import cases
    from rheo_core import TreeShape, proxies
    from tests.core import test_rates
    from tests.exact.acceptance import test_facts
    from tests.exact.enumeration import test_tree_classes, test_trees
    from tests.exact.faults import test_faults
    from tests.exact.methods import test_catalogue
    from tests.exact.verdict.test_second_implementation import (
        CASES,
        compare,
        test_a_proxy_enters_in_the_arithmetic_of_the_row,
        test_a_tail_mass_that_rounds_above_1_counts_as_1,
        test_the_tail_law_is_the_second_implementation_s,
    )
    from tests.pairs import HAND_MADE

    pairs = [models for models in HAND_MADE if models.name in AWKWARD]
    test_a_proxy_enters_in_the_arithmetic_of_the_row()
    test_a_tail_mass_that_rounds_above_1_counts_as_1()
    test_the_tail_law_is_the_second_implementation_s()
    quarter = Fraction(1, 4)
    test_rates.check([quarter, Fraction(0), 2 * quarter, quarter], [quarter] * 4, 1, 3)
    test_trees.test_trees_are_equal_when_all_that_makes_a_class_and_all_scores_are()
    test_trees.test_paths_children_and_pruning()
    test_trees.test_a_shape_of_nothing_is_refused((1, 1, 0))
    test_faults.test_only_the_accepted_prefix_counts()
    test_faults.test_an_end_token_inside_the_accepted_prefix_ends_the_text()
    test_faults.test_a_one_hot_draft_row_has_no_sampled_slot()
    test_catalogue.test_an_id_map_is_followed("block")
    test_catalogue.test_the_built_in_methods_are_made_of_these_parts()
    for name in ("rheo", "rheo-z", "rheo-next", "top-k"):
        test_facts.test_a_float_law_that_holds_more_than_1_is_drafted_like_any_other(np.float32, name, 0)
    for models, case in product(pairs, CASES):
        compare(models, *case)
        test_tree_classes.assert_same_tree(models.pair(), TreeShape(3, 3, 7), case[1], proxies.RHEO, 0)
    test_tree_classes.test_unpruned_trees_are_all_trees()
    test_tree_classes.test_the_k_cap_is_met()
    test_tree_classes.test_a_proxy_that_breaks_lemma_4_is_enumerated_by_brute_force()
    for rule in test_faults.RULES:
        test_faults.test_a_candidate_that_is_no_id_is_refused(rule, -1)
        test_faults.test_an_entry_that_rounds_above_1_is_a_sure_coin(rule)
    test_rates.test_floats_agree_with_rationals_to_their_precision(np.float64)
    for key, fault in cases.items():
        test_faults.test_the_verdict_is_the_label(key)
        if fault.law is not None:
            test_faults.test_the_law_is_exactly_the_one_given(key)
