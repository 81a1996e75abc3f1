(* Theorem 6 as statements about texts: what one cycle emits, and what any number of cycles
   emit, begins with a given sequence exactly as often as the target's own text does. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes verification cycle.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Proxy.
Variables (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T).
Variables (q s : seq T -> T -> R) (m K : nat).
Hypotheses (uV : uniq vocab) (ql : forall c, law vocab (q c)) (sl : forall c, law vocab (s c)).

Lemma has_sampled_next c : has_sampled vocab q s m K c -> nth blank (order vocab q c) m \in rest vocab q m c.
Proof.
case/andP => _ mass0; have lt : (m < size (order vocab q c))%N.
  rewrite ltnNge; apply/negP => le.
  by move: mass0; rewrite /mass /rest drop_oversize ?ltxx.
by rewrite -[X in nth _ _ X](addn0 m) -nth_drop mem_nth // size_drop subn_gt0.
Qed.

(* The paper's proxy qualifies: Lemma 4 (its first half) and the bound by 1. *)
Lemma rheo_assumptions :
  assumptions vocab blank q s m K (rheo_proxy vocab blank q m).
Proof.
split=> // c hs; have nr := has_sampled_next hs.
  rewrite /rheo_proxy; move: nr; case: m => // m' nr.
  rewrite le_minr (rest_le blank nr) ?leqW //=.
  by apply: sum_le_mem nr => v /rest_vocab; apply: law_ge0.
have sm : (m < size (order vocab q c))%N.
  case/andP: hs => _ mass0; rewrite ltnNge; apply/negP => le.
  by move: mass0; rewrite /mass /rest drop_oversize ?ltxx.
have le1 i : (i < size (order vocab q c))%N -> q c (nth blank (order vocab q c) i) <= 1.
  by move=> lt; apply: (law_le1 (ql c)); rewrite -(mem_order vocab q c) mem_nth.
rewrite /rheo_proxy; case: m sm => [|m'] sm; first exact: le1.
by rewrite le_minl le1 // ltnW.
Qed.
End Proxy.

Section Text.
Variables (R : realFieldType) (T : eqType) (vocab : seq T).
Variable p : seq T -> T -> R.
Hypotheses (uV : uniq vocab) (p_law : forall c, law vocab (p c)).

(* The target's probability of the text w after the prefix c. *)
Fixpoint text_probability c (w : seq T) : R :=
  if w is x :: w' then p c x * text_probability (rcons c x) w' else 1.

(* The probability that the text e after c, continued from the target, begins with w. *)
Fixpoint begins c (w e : seq T) : R :=
  match w, e with
  | [::], _ => 1
  | x :: w', [::] => p c x * begins (rcons c x) w' [::]
  | x :: w', y :: e' => (x == y)%:R * begins (rcons c y) w' e'
  end.

Lemma begins_nothing c w : begins c w [::] = text_probability c w.
Proof. by elim: w c => //= x w IH c; rewrite IH. Qed.

Lemma begins_long c w e : (size w <= size e)%N -> begins c w e = (take (size w) e == w)%:R.
Proof.
elim: w c e => [|x w IH] c [|y e] //= se; rewrite ?take0 ?eqxx // IH //.
by rewrite eqseq_cons eq_sym; case: eqP => _; rewrite ?mul1r ?mul0r.
Qed.

Lemma begins_harmonic c w e : all (mem vocab) w ->
  begins c w e = sum_of vocab (fun v => p (c ++ e) v * begins c w (rcons e v)).
Proof.
elim: w c e => [|x w IH] c e /=.
  move=> _; rewrite (eq_sum _ (g := p (c ++ e))) ?law_sum // => v.
  by case: e => [|y e] /=; rewrite mulr1.
case/andP => xV wV; case: e => [|y e] /=.
  rewrite cats0 sum_ofE (bigD1_seq x) //= eqxx mul1r big1 ?addr0 // => v /negbTE vx.
  by rewrite eq_sym vx mul0r mulr0.
rewrite (IH (rcons c y) e wV) -sum_mull; apply: eq_sum => v.
by rewrite cat_rcons mulrCA.
Qed.
End Text.

Section Theorem6.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
Variables (p q s : seq T -> T -> R) (m K D budget : nat) (proxy : seq T -> T -> R).
Variable arrange : seq T -> seq (node R T) -> seq (node R T).

(* A cycle after the prefix c: every model is asked about texts that begin with c. *)
Definition after (A : Type) (c : seq T) (f : seq T -> A) : seq T -> A := fun e => f (c ++ e).
Definition cycle_after c : dist R (seq T) := cycle vocab blank (after c p) (after c q) (after c s)
  m K D (after c proxy) (after c arrange) budget.

(* n cycles, one after the other: the text that they emit together. *)
Fixpoint cycles n c : dist R (seq T) :=
  if n is n'.+1
  then bind (cycle_after c) (fun e => [seq (we.1, e ++ we.2) | we <- cycles n' (c ++ e)])
  else [:: (1, [::])].

Hypothesis A : assumptions vocab blank q s m K proxy.
Hypothesis p_law : forall c, law vocab (p c).
Hypothesis arrange_perm : forall c l, perm_eq (arrange c l) l.

Lemma assumptions_after c :
  assumptions vocab blank (after c q) (after c s) m K (after c proxy).
Proof. by split; intros; apply A. Qed.

Lemma cycle_after_lossless c g :
  (forall e, g e = sum_of vocab (fun v => p (c ++ e) v * g (rcons e v))) ->
  mean (cycle_after c) g = g [::].
Proof.
move=> gh; apply: cycle_lossless; first exact: assumptions_after.
- by move=> e; apply: p_law.
- by move=> e l; apply: arrange_perm.
- exact: gh.
Qed.

Lemma cycles_lossless n c g :
  (forall e, g e = sum_of vocab (fun v => p (c ++ e) v * g (rcons e v))) ->
  mean (cycles n c) g = g [::].
Proof.
elim: n c g => [|n IH] c g gh /=; first by rewrite /mean /= mul1r addr0.
rewrite mean_bind -(cycle_after_lossless gh); apply: eq_mean => e.
rewrite /mean sum_map -/(mean (cycles n (c ++ e)) (fun e' => g (e ++ e'))) IH ?cats0 // => e'.
by rewrite gh; apply: eq_sum => v; rewrite catA rcons_cat.
Qed.

(* Every cycle emits at least one token. *)
Lemma reject_texts_size c cands r (below : node R T -> dist R (seq T)) n : (n <= size c)%N ->
  (forall u, u \in cands -> all (fun we => n < size we.2)%N (below u)) ->
  all (fun we => n < size we.2)%N (reject_texts vocab blank c cands r below).
Proof.
move=> nc; elim: cands r => [|u us IH] r big /=.
  by apply/allP => we /mapP[v _ ->] /=; rewrite size_rcons ltnS.
rewrite all_cat !all_map; apply/andP; split; first exact: big (mem_head _ _).
by apply: IH => v vs; apply: big; rewrite inE vs orbT.
Qed.

Lemma verify_size (pp qq ss : seq T -> T -> R) (arr : seq T -> seq (node R T) -> seq (node R T))
    d (kept : seq (node R T)) (P : node R T) : (forall c l, perm_eq (arr c l) l) ->
  all (fun we => size P < size we.2)%N (verify vocab blank pp qq ss m arr d kept P).
Proof.
move=> ap; elim: d P => [|d IH] P /=.
  by apply/allP => we /mapP[v _ ->] /=; rewrite size_rcons ltnS size_rev size_map.
have stop : (size P <= size (tokens P))%N by rewrite size_rev size_map.
have deep u : u \in candidates_of kept P ->
    all (fun we => size P < size we.2)%N (verify vocab blank pp qq ss m arr d kept u).
  rewrite mem_filter => /andP[/child_size su _]; apply: sub_all (IH u) => we.
  by rewrite su; apply: ltnW.
have rest r : all (fun we => size P < size we.2)%N (reject_texts vocab blank (tokens P)
    (arr (tokens P) [seq v <- candidates_of kept P | ~~ is_sampled v]) r
    (verify vocab blank pp qq ss m arr d kept)).
  by apply: reject_texts_size => // u; rewrite (perm_mem (ap _ _)) mem_filter => /andP[_ /deep].
case E: [seq v <- _ | is_sampled v] => [|u l] //; rewrite all_cat !all_map; apply/andP; split => //.
apply: deep; have : u \in u :: l by rewrite mem_head.
by rewrite -E mem_filter => /andP[].
Qed.

Lemma bind_all (X Y : eqType) (d : dist R X) (k : X -> dist R Y) (a : pred Y) :
  (forall x, x \in map snd d -> all (fun we => a we.2) (k x)) -> all (fun we => a we.2) (bind d k).
Proof.
move=> ka; rewrite /bind; apply/allP => we /flatten_mapP[wx wxd /mapP[we' we'k ->]] /=.
by apply: (allP (ka wx.2 (map_f snd wxd))) we'k.
Qed.

Lemma cycles_size n c : all (fun we => n <= size we.2)%N (cycles n c).
Proof.
elim: n c => [|n IH] c //=; apply: (@bind_all _ _ _ _ (fun e => n < size e)%N) => e.
rewrite /cycle_after /cycle => ed.
have e1 : (0 < size e)%N.
  move: ed => /mapP[we wed ->]; move: we wed; apply/allP.
  apply: (@bind_all _ _ _ _ (fun e => 0 < size e)%N) => U _.
  by apply: (@verify_size _ _ _ _ D _ [::]) => c' l; apply: arrange_perm.
rewrite all_map; apply: sub_all (IH (c ++ e)) => we /= nwe.
by rewrite size_cat -addn1 addnC leq_add.
Qed.

(* Theorem 6. One cycle after the prefix c, continued from the target, begins with w with
   the target's probability. *)
Theorem lossless_cycle c w : all (mem vocab) w ->
  mean (cycle_after c) (begins p c w) = text_probability p c w.
Proof.
move=> wV; rewrite -begins_nothing; apply: cycle_after_lossless => e.
by apply: begins_harmonic => //; apply: uniq_vocab A.
Qed.

(* Any number of cycles, continued from the target. *)
Theorem lossless_cycles n c w : all (mem vocab) w ->
  mean (cycles n c) (begins p c w) = text_probability p c w.
Proof.
move=> wV; rewrite -begins_nothing; apply: cycles_lossless => e.
by apply: begins_harmonic => //; apply: uniq_vocab A.
Qed.

(* As many cycles as tokens, and nothing is left to continue: the decoder's own text. *)
Theorem lossless_text n c w : all (mem vocab) w -> (size w <= n)%N ->
  mean (cycles n c) (fun e => (take (size w) e == w)%:R) = text_probability p c w.
Proof.
move=> wV wn; rewrite -(lossless_cycles n c wV); apply: eq_sum_in => we wed; congr (_ * _).
by rewrite begins_long // (leq_trans wn) // (allP (cycles_size n c)).
Qed.
End Theorem6.

(* The paper's method. *)
Corollary rheo_sampling_lossless (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T)
    (p q s : seq T -> T -> R) (m K D budget n : nat) (c w : seq T) :
  uniq vocab -> (forall c, law vocab (p c)) -> (forall c, law vocab (q c)) ->
  (forall c, law vocab (s c)) -> all (mem vocab) w -> (size w <= n)%N ->
  mean (cycles vocab blank p q s m K D budget (rheo_proxy vocab blank q m) (fun=> id) n c)
    (fun e => (take (size w) e == w)%:R) = text_probability p c w.
Proof.
move=> uV pl ql sl wV wn; apply: lossless_text => //; exact: rheo_assumptions.
Qed.
