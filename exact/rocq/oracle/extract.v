(* The program of the theorems as OCaml, with integers of any size. *)
From Coq Require Import QArith Qcanon ZArith Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZBigInt.
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import execution.
Extraction Language OCaml.
Set Extraction AccessOpaque.
Definition run_text (V m K D R : nat) (p q s : table) :=
  [seq (show wt.1, wt.2) | wt <- grown_text V m K D R (model p) (model q) (model s)].
Definition run_classes (V m K D R : nat) (q s : table) := grown_classes V m K D R (model q) (model s).
Definition make_fraction (n : Z) (d : positive) := fraction n d.
Extraction "rheo.ml" run_text run_classes make_fraction.
