(* Drafting that remembers. After one and the same text EAGLE's draft has different rows, as
   other positions carry features of the target; adaptive methods change K, D and R as they
   go. Here everything about a cycle may depend on the kept trees and texts of all cycles
   before it, and the text is the target's all the same. *)
From Coq Require Import QArith Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes verification cycle theorem.
From Rheo Require Import rationals execution counterexamples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section History.
Variables (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T).
Notation node := (node R T).

(* The cycles so far: of each, the tree that was kept and the text that was emitted. *)
Definition history := seq (seq node * seq T).
Definition text_of (h : history) : seq T := flatten (map snd h).

(* What a cycle is made of, decided when it begins. Its models are functions of the tokens
   that follow the text so far. *)
Record settings := Settings {
  scores : seq T -> T -> R; sampling : seq T -> T -> R; lead_size : nat;
  width : nat; depth : nat; budget : nat; proxies : seq T -> T -> R;
  trial_order : seq T -> seq node -> seq node }.

Record sound (a : settings) : Prop := Sound {
  sound_draft : assumptions vocab blank (scores a) (sampling a) (lead_size a) (width a) (proxies a);
  sound_order : forall c l, perm_eq (trial_order a c l) l }.

Variables (p : seq T -> T -> R) (decide : seq T -> history -> settings).

(* One cycle after the text c, with its tree kept on record. *)
Definition traced_cycle (a : settings) c : dist R (seq node * seq T) :=
  bind (outcomes (weight vocab (scores a) (sampling a) (lead_size a))
                 (choices vocab (scores a) (sampling a) (lead_size a))
    (layered vocab blank (scores a) (sampling a) (lead_size a) (width a) (depth a) (proxies a) (@rank R T)))
  (fun U => let kept := prune (@rank R T) (budget a) U in
    [seq (we.1, (kept, we.2)) | we <- verify vocab blank (after c p) (scores a) (sampling a)
      (lead_size a) (trial_order a) (depth a) kept [::]]).

(* n further cycles after the prompt c and the history h: the text that they emit. *)
Fixpoint remembering_cycles n c h : dist R (seq T) :=
  if n is n'.+1
  then bind (traced_cycle (decide c h) (c ++ text_of h))
    (fun te => [seq (we.1, te.2 ++ we.2) | we <- remembering_cycles n' c (rcons h te)])
  else [:: (1, [::])].

Hypothesis uV : uniq vocab.
Hypothesis p_law : forall c, law vocab (p c).
Hypothesis decide_sound : forall c h, sound (decide c h).

Lemma traced_cycle_lossless a c g : sound a ->
  (forall e, g e = sum_of vocab (fun v => p (c ++ e) v * g (rcons e v))) ->
  mean (traced_cycle a c) (fun te => g te.2) = g [::].
Proof.
case=> A ap gh; rewrite -[RHS](@cycle_lossless R T vocab blank (after c p) (scores a) (sampling a)
  (lead_size a) (width a) (depth a) (proxies a) (trial_order a) A (fun e => p_law _) ap g gh (budget a)).
rewrite /traced_cycle /cycle !mean_bind; apply: eq_mean => U.
by rewrite /mean sum_map.
Qed.

Lemma text_of_rcons h te : text_of (rcons h te) = text_of h ++ te.2.
Proof. by rewrite /text_of map_rcons flatten_rcons. Qed.

Lemma remembering_harmonic n c h g :
  (forall e, g e = sum_of vocab (fun v => p ((c ++ text_of h) ++ e) v * g (rcons e v))) ->
  mean (remembering_cycles n c h) g = g [::].
Proof.
elim: n h g => [|n IH] h g gh /=; first by rewrite /mean /= mul1r addr0.
rewrite mean_bind -(traced_cycle_lossless (decide_sound c h) gh); apply: eq_mean => te.
rewrite /mean sum_map -/(mean (remembering_cycles n c (rcons h te)) (fun e' => g (te.2 ++ e'))) IH ?cats0 // => e'.
by rewrite gh; apply: eq_sum => v; rewrite text_of_rcons !catA rcons_cat.
Qed.

(* n cycles, continued from the target, begin with w as often as the target's text does. *)
Theorem remembering_lossless_cycles n c h w : all (mem vocab) w ->
  mean (remembering_cycles n c h) (begins p (c ++ text_of h) w) = text_probability p (c ++ text_of h) w.
Proof.
move=> wV; rewrite -begins_nothing; apply: remembering_harmonic => e.
exact: begins_harmonic.
Qed.

Lemma traced_cycle_size a c : sound a -> all (fun we => 0 < size we.2.2)%N (traced_cycle a c).
Proof.
case=> _ ap; apply: (@bind_all _ _ _ _ _ (fun te : seq node * seq T => 0 < size te.2)%N) => U _.
by rewrite all_map; apply: sub_all (verify_size vocab blank _ _ _ _ _ _ [::] ap) => we.
Qed.

Lemma remembering_size n c h : all (fun we => n <= size we.2)%N (remembering_cycles n c h).
Proof.
elim: n h => [|n IH] h //=; apply: (@bind_all _ _ _ _ _ (fun e => n < size e)%N) => te ted.
have te1 : (0 < size te.2)%N.
  move: ted => /mapP[we wed ->].
  exact: (allP (traced_cycle_size (c ++ text_of h) (decide_sound c h))) wed.
rewrite all_map; apply: sub_all (IH (rcons h te)) => we /= nwe.
by rewrite size_cat -addn1 addnC leq_add.
Qed.

(* As many cycles as tokens: the text of the decoder itself, nothing continued. *)
Theorem remembering_lossless_text n c w : all (mem vocab) w -> (size w <= n)%N ->
  mean (remembering_cycles n c [::]) (fun e => (take (size w) e == w)%:R) = text_probability p c w.
Proof.
move=> wV wn; have := remembering_lossless_cycles n c [::] wV; rewrite cats0 => <-.
apply: eq_sum_in => we wed; congr (_ * _).
by rewrite begins_long // (leq_trans wn) // (allP (remembering_size n c [::])).
Qed.
End History.

(* The published method with a draft that depends on the history and a shape that adapts:
   nothing is assumed but that the rows are laws. *)
Corollary adaptive_rheo_lossless (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T)
    (p : seq T -> T -> R) (q s : seq T -> history R T -> seq T -> T -> R)
    (m K D B : seq T -> history R T -> nat) n c w :
  uniq vocab -> (forall c, law vocab (p c)) ->
  (forall c h e, law vocab (q c h e)) -> (forall c h e, law vocab (s c h e)) ->
  all (mem vocab) w -> (size w <= n)%N ->
  mean (remembering_cycles vocab blank p (fun c h => @Settings R T (q c h) (s c h) (m c h) (K c h) (D c h) (B c h)
      (rheo_proxy vocab blank (q c h) (m c h)) (fun=> id)) n c [::])
    (fun e => (take (size w) e == w)%:R) = text_probability p c w.
Proof.
move=> uV pl ql sl wV wn; apply: remembering_lossless_text => // c' h.
apply: Sound => [|e l]; last exact: perm_refl.
exact: (rheo_assumptions blank _ _ uV (ql c' h) (sl c' h)).
Qed.

(* ---- what the statement is for, run ---- *)
Local Open Scope nat_scope.
Local Notation "a // b" := (fraction a b) (at level 40).
Notation rational_history := (history [realFieldType of Qc] [eqType of nat]).

(* After one and the same text the draft has two rows, as the last cycle gave one token or
   more; and the tree grows while all is accepted. No function of the text does that. *)
Definition eager (p : seq nat -> nat -> Qc) (_ : seq nat) (h : rational_history) :=
  let far := 1 < size (last ([::], [::]) h).2 in
  let q := if far then row [:: 2 // 3; 1 // 3] else row [:: 1 // 4; 3 // 4] in
  @Settings [realFieldType of Qc] [eqType of nat] q q (if far then 1 else 0) 2 (if far then 2 else 1) (if far then 4 else 1)
    (rheo_proxy (iota 0 2) 0 q (if far then 1 else 0)) (fun=> id).

(* The theorem's hypotheses are met by it. *)
Lemma eager_lossless n w : let p := row [:: 2 // 5; 3 // 5] in all (mem (iota 0 2)) w -> size w <= n ->
  mean (remembering_cycles (iota 0 2) 0 p (eager p) n [::] [::]) (fun e => (take (size w) e == w)%:R)%R
  = text_probability p [::] w.
Proof.
move=> p wV wn; apply: remembering_lossless_text => // c h.
split=> [|e l]; last exact: perm_refl.
by rewrite /eager; case: (1 < _); apply: rheo_assumptions => // e; vm_compute.
Qed.

Definition begin_with (w e : seq nat) : Qc := if take (size w) e == w then 1%R else 0%R.

Lemma eager_run : let p := row [:: 2 // 5; 3 // 5] in
  mean (remembering_cycles (iota 0 2) 0 p (eager p) 2 [::] [::]) (begin_with [:: 0; 1]) = 6 // 25
  /\ ~~ all2 (fun u v => u == v) (map (scores (eager p [::] [:: ([::], [:: 0; 1])]) [::]) [:: 0; 1])
      (map (scores (eager p [::] [:: ([::], [:: 0]); ([::], [:: 1])]) [::]) [:: 0; 1]).
Proof. by split; [apply/eqP|]; vm_compute. Qed.

(* A budget that looks at the tree of its own cycle is no such setting, and loses: the tree
   is kept where its token is 0 and dropped where it is 1. *)
Definition peeking_law (p q : seq nat -> nat -> Qc) : dist [realFieldType of Qc] (seq nat) :=
  bind (pruned_law 2 0 1 1 1 q q (paper_proxy 2 0 q) paper_rank) (fun t =>
    verify (iota 0 2) 0 p q q 0 in_slot_order 1 (if map (token 0) t == [:: 0] then t else [::]) [::]).

Lemma peeking_budget_lossy :
  mean (peeking_law halves halves) (begin_with [:: 0]) = 3 // 4
  /\ text_probability halves [::] [:: 0] = 1 // 2.
Proof. by split; apply/eqP; vm_compute. Qed.
