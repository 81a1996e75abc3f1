(* What the main statements rest on: nothing but Coq itself. Not part of the library:
   `make check` compiles this file and reads what it prints. *)
From Rheo Require Import laws programs pool tree growth classes lemma7 verification cycle theorem rates.
From Rheo Require Import rationals execution counterexamples history template instances rounding.

(* One layer *)
Print Assumptions emission_law.
Print Assumptions reject_output.
Print Assumptions local_ranking.
(* The tree *)
Print Assumptions child_score_le.
Print Assumptions kept_closed.
Print Assumptions kept_size.
Print Assumptions growth_is_pruning.
Print Assumptions growth_law.
Print Assumptions layered_assignment.
(* Classes *)
Print Assumptions next_slot.
Print Assumptions topological_invariance.
Print Assumptions deterministic_consistency.
Print Assumptions stochastic_fidelity.
Print Assumptions class_probability.
Print Assumptions other_classes.
Print Assumptions class_cylinder.
(* Theorem 6 *)
Print Assumptions grow_lossless.
Print Assumptions cycle_lossless.
Print Assumptions lossless_cycle.
Print Assumptions lossless_cycles.
Print Assumptions lossless_text.
Print Assumptions rheo_assumptions.
Print Assumptions rheo_sampling_lossless.
(* Theorem 6 for drafts and shapes that depend on the history *)
Print Assumptions remembering_lossless_cycles.
Print Assumptions remembering_lossless_text.
Print Assumptions adaptive_rheo_lossless.
Print Assumptions eager_run.
Print Assumptions eager_lossless.
Print Assumptions peeking_budget_lossy.
(* Any growth, any verifier that meets V1 and V2 *)
Print Assumptions template_lossless.
Print Assumptions template_cycle.
Print Assumptions rheo_drafting.
Print Assumptions templated_cycle_lossless.
Print Assumptions algorithm_1_verifies.
Print Assumptions sequential_rejection_verifies.
Print Assumptions vanilla_verifies.
Print Assumptions algorithm_1_lossless.
Print Assumptions sequential_rejection_lossless.
Print Assumptions vanilla_lossless.
Print Assumptions chain_lossless.
(* Theorem 3 *)
Print Assumptions rheo_rate.
Print Assumptions rheo_rate_bound.
Print Assumptions rheo_rate_optimum.
Print Assumptions plain_rate.
(* Rounding and drawing *)
Print Assumptions coupling_bound.
Print Assumptions errors_add_up.
Print Assumptions residual_error.
Print Assumptions relative_error_bounds_nothing.
Print Assumptions inverse_cdf.
Print Assumptions inverse_cdf_draws.
Print Assumptions drawn_positions.
(* What runs *)
Print Assumptions Qc_realFieldType.
Print Assumptions mean_text_law.
Print Assumptions mean_grown_text.
Print Assumptions grown_cycle_lossless.
Print Assumptions raw_proxy_lossy.
Print Assumptions low_proxy_lossy.
Print Assumptions adhoc_proxy_lossy.
Print Assumptions token_tie_lossy.
Print Assumptions rrsw_with_tail_mass_lossy.
