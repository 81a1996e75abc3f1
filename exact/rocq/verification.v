(* Algorithm 1 on a kept tree, layer by layer, as a law on token sequences: the sampled
   token first, the rest in any order. Adding one node to the tree, averaged over its
   token if it is a sampled one, leaves every continuation's probability as it was. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Verification.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
Variables (p q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).
(* The order in which a node's other candidates are tried. *)
Variable arrange : seq T -> seq (node R T) -> seq (node R T).
Notation node := (node R T).
Implicit Types (u v w P : node) (kept : seq node).
Notation token := (token blank).
Notation tail := (tail vocab q s m).

(* A law on texts: the one token v, or what a candidate's own layer gives. *)
Definition emit (c : seq T) (r : T -> R) : dist R (seq T) := [seq (r v, rcons c v) | v <- vocab].

Fixpoint reject_texts c (cands : seq node) (r : T -> R) (below : node -> dist R (seq T)) :=
  match cands with
  | [::] => emit c r
  | u :: us => scale (r (token u)) (below u)
      ++ scale (1 - r (token u)) (reject_texts c us (normalise vocab (without (token u) r)) below)
  end.

Definition candidates_of kept P := [seq v <- kept | is_child P v].

(* Algorithm 1, from node P on: the texts it can give, with their probabilities. A text is
   the tokens of the tree accepted so far and one token more. *)
Fixpoint verify depth kept P : dist R (seq T) :=
  let c := tokens P in
  if depth is d.+1 then
    let cands := candidates_of kept P in
    let others := arrange c [seq v <- cands | ~~ is_sampled v] in
    if [seq v <- cands | is_sampled v] is u :: _ then
      let a := coin (p c) (tail c) (token u) in
      scale a (verify d kept u)
      ++ scale (1 - a) (reject_texts c others (residual vocab (p c) (tail c)) (verify d kept))
    else reject_texts c others (p c) (verify d kept)
  else emit c (p c).

Hypothesis A : assumptions vocab blank q s m K proxy.
Hypothesis p_law : forall c, law vocab (p c).
Hypothesis arrange_perm : forall c l, perm_eq (arrange c l) l.

(* What a text is worth: any g that the target's own next token leaves unchanged. *)
Variable g : seq T -> R.
Hypothesis harmonic : forall c, g c = sum_of vocab (fun v => p c v * g (rcons c v)).

Lemma mean_emit c r : mean (emit c r) g = sum_of vocab (fun v => r v * g (rcons c v)).
Proof. by rewrite /mean /emit sum_map. Qed.

Lemma mean_reject c cands r below : mean (reject_texts c cands r below) g =
  reject vocab token cands r (fun u => mean (below u) g) (fun v => g (rcons c v)).
Proof.
elim: cands r => [|u us IH] r /=; first exact: mean_emit.
by rewrite mean_cat !mean_scale IH.
Qed.

(* The kept trees that can occur: every node in its parent's pool as it stands, no fill
   without its sampled sibling, sampled tokens off the lead, no slot twice. *)
Notation drawn := (drawn blank).
Notation children := (children vocab blank q s m K proxy).
Notation expandable := (expandable vocab q s m K).
Record proper kept : Prop := Proper {
  kept_uniq : uniq kept;
  kept_pool : forall v P, v \in kept -> is_child P v -> v \in children (drawn kept P) P;
  kept_drawn : forall P y, drawn kept P = Some y ->
    expandable P /\ y \in support vocab q s m (tokens P);
  kept_leaf : forall v P, v \in kept -> is_child P v -> (P == [::]) || (P \in kept) }.

Lemma local_value kept P depth : proper kept -> mean (verify depth.+1 kept P) g =
  let c := tokens P in
  let value u := mean (verify depth kept u) g in
  let others := [seq v <- candidates_of kept P | ~~ is_sampled v] in
  let whole r := sum_of others (fun u => r (token u) * value u)
    + sum_of vocab (fun v => if v \in map token others then 0 else r v * g (rcons c v)) in
  if [seq v <- candidates_of kept P | is_sampled v] is u :: _ then
    coin (p c) (tail c) (token u) * value u
    + (1 - coin (p c) (tail c) (token u)) * whole (residual vocab (p c) (tail c))
  else whole (p c).
Proof.
Admitted.
End Verification.
