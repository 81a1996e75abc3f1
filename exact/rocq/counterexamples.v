(* What the theorem's assumptions are for: each one dropped, the same definitions give a
   text that is not the target's. Computed by the kernel. *)
From Coq Require Import QArith Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree verification theorem rationals execution.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope nat_scope.

(* How often the text of one cycle begins with the token v, under other proxies and rankings. *)
Definition first_token V m K D R p q proxy ranking v : Qc :=
  mean (text_law V m K D R p q q proxy ranking) (begins p [::] [:: v]).
Definition row (xs : seq Qc) : seq nat -> nat -> Qc := model ([::], xs).
Local Notation "a // b" := (fraction a b) (at level 40).

(* The sampled token ranked by its own probability: the proxy reads the token. *)
Definition thirds := row [:: 1 // 3; 2 // 3].
Lemma raw_proxy_lossy : first_token 2 0 2 1 1 thirds thirds thirds paper_rank 0 = 1 // 9
  /\ text_probability thirds [::] [:: 0] = 1 // 3.
Proof. by split; apply/eqP; vm_compute. Qed.

(* A proxy that ignores the token but lies below q(x_(m+1)): half the least probability. *)
Definition halves := row [:: 1 // 2; 1 // 2].
Lemma low_proxy_lossy : first_token 2 0 2 2 2 halves thirds (fun _ _ => 1 // 6) paper_rank 0 = 7 // 18
  /\ text_probability halves [::] [:: 0] = 1 // 2.
Proof. by split; apply/eqP; vm_compute. Qed.

(* Table 1's ad-hoc proxy, 1/4 where q(x_2) = 3/10, on a uniform target. *)
Definition table1 := row [:: 1 // 2; 3 // 10; 1 // 5].
Definition even := row [:: 1 // 3; 1 // 3; 1 // 3].
Lemma adhoc_proxy_lossy : first_token 3 1 3 1 2 even table1 (fun _ _ => 1 // 4) paper_rank 2 = 2 // 15
  /\ text_probability even [::] [:: 2] = 1 // 3.
Proof. by split; apply/eqP; vm_compute. Qed.

(* A tie broken by a node's own token: the sampled slot's score is that of the lead token. *)
Definition token_rank : rel (node [realFieldType of Qc] [eqType of nat]) :=
  lex (fun u v => (score v <= score u)%R) (fun u v => (token 0 u <= token 0 v)%N).
Definition quarters := row [:: 1 // 4; 1 // 2; 1 // 4].
Lemma token_tie_lossy :
  first_token 3 1 2 1 1 even quarters (paper_proxy 3 1 quarters) token_rank 0 = 1 // 2
  /\ text_probability even [::] [:: 0] = 1 // 3.
Proof. by split; apply/eqP; vm_compute. Qed.

(* The same rows under the paper's proxy and ranking: nothing is lost, as the theorem says. *)
Lemma paper_lossless_there :
  first_token 2 0 2 1 1 thirds thirds (paper_proxy 2 0 thirds) paper_rank 0 = 1 // 3
  /\ first_token 3 1 2 1 1 even quarters (paper_proxy 3 1 quarters) paper_rank 0 = 1 // 3.
Proof. by split; apply/eqP; vm_compute. Qed.

(* Recursive rejection without replacement (appendix D.2): candidates in slot order, leads
   first, then the sampled one against what is left of p, then the fills. *)
Section RRSw.
Variables (V m : nat) (p q : seq nat -> nat -> Qc).
Let vocab := iota 0 V.
Notation node := (node [realFieldType of Qc] [eqType of nat]).

Fixpoint rrsw_texts c (cands : seq node) (r : nat -> Qc)
    (below : node -> dist [realFieldType of Qc] (seq nat)) : dist [realFieldType of Qc] (seq nat) :=
  if cands is u :: us then
    let t := tail vocab q q m c in
    let a := if is_sampled u then coin r t (token 0 u) else r (token 0 u) in
    let rest := if is_sampled u then residual vocab r t else normalise vocab (without (token 0 u) r) in
    scale a (below u) ++ scale (1 - a)%R (rrsw_texts c us rest below)
  else emit vocab c r.

Fixpoint rrsw depth kept P : dist [realFieldType of Qc] (seq nat) :=
  let in_slot_order := sort (fun u v : node => seq_lex leq (slots u) (slots v)) in
  if depth is d.+1
  then rrsw_texts (tokens P) (in_slot_order (candidates_of kept P)) (p (tokens P)) (rrsw d kept)
  else emit vocab (tokens P) (p (tokens P)).

Definition rrsw_first_token K D R proxy v : Qc := mean
  (bind (pruned_law V m K D R q q proxy paper_rank) (fun t => rrsw D t [::])) (begins p [::] [:: v]).
End RRSw.

(* It is lossy under a proxy that is fine for Algorithm 1: the tail mass z may put the
   sampled slot before its lead. Under the paper's proxy, which cannot, it is not. *)
Definition target2 := row [:: 0 // 1; 1 // 2; 1 // 2].
Definition draft2 := model ([:: ([::], [:: 1 // 5; 2 // 5; 2 // 5]); ([:: 2], [:: 1 // 1; 0 // 1; 0 // 1])],
  [:: 1 // 3; 1 // 3; 1 // 3]).
Definition tail_mass c (_ : nat) := mass (iota 0 3) draft2 draft2 1 c.
Lemma rrsw_with_tail_mass_lossy :
  rrsw_first_token 3 1 target2 draft2 2 2 2 tail_mass 1 = 1 // 3
  /\ first_token 3 1 2 2 2 target2 draft2 tail_mass paper_rank 1 = 1 // 2
  /\ rrsw_first_token 3 1 target2 draft2 2 2 2 (paper_proxy 3 1 draft2) 1 = 1 // 2
  /\ text_probability target2 [::] [:: 1] = 1 // 2.
Proof. by do !split; apply/eqP; vm_compute. Qed.
