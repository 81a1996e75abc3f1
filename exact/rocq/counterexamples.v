(* What the theorem's assumptions are for: each one dropped, the same definitions give a
   text that is not the target's. Computed by the kernel. *)
From Coq Require Import QArith Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree theorem rationals execution.
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
