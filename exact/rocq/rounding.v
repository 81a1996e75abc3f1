(* What an error in a row does to a text, and how a row is drawn from a uniform number. Total
   variation between two laws is the mass by which one exceeds the other. *)
From Coq Require Import QArith Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs theorem rates rationals execution counterexamples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma max0_mono (R : realFieldType) (x y : R) : x <= y -> Num.max 0 x <= Num.max 0 y.
Proof. by move=> xy; rewrite le_maxl le_maxr lexx /= le_maxr xy orbT. Qed.

Lemma sum_le (R : realFieldType) (A : eqType) (s : seq A) (f h : A -> R) :
  {in s, forall a, f a <= h a} -> sum_of s f <= sum_of s h.
Proof. by move=> fh; rewrite -subr_ge0 -sum_sub; apply: sum_ge0 => a /fh; rewrite subr_ge0. Qed.

Section Distance.
Variables (R : realFieldType) (T : Type) (vocab : seq T).
Implicit Types (x y : T -> R).

Definition excess x y : R := sum_of vocab (fun v => Num.max 0 (x v - y v)).

Lemma excess_ge0 x y : 0 <= excess x y.
Proof. by rewrite /excess; elim: vocab => //= v s IH; rewrite addr_ge0 // le_maxr lexx. Qed.

Lemma excess_swap x y : excess x y - excess y x = sum_of vocab x - sum_of vocab y.
Proof.
rewrite -!sum_sub; apply: eq_sum => v; rewrite -(opprB (x v)).
case: (leP 0 (x v - y v)) => h; first by rewrite [X in _ - X]max_l ?subr0 // oppr_le0.
by rewrite max_r ?oppr_ge0 ?ltW // sub0r opprK.
Qed.

(* Twice the excess of two laws is the sum of their differences. *)
Lemma excess_norm x y : excess x y + excess y x = sum_of vocab (fun v => `|x v - y v|).
Proof.
rewrite -sum_add; apply: eq_sum => v; rewrite -(opprB (x v)).
case: (leP 0 (x v - y v)) => h; first by rewrite [X in _ + X]max_l ?addr0 ?oppr_le0 // ger0_norm.
by rewrite max_r ?oppr_ge0 ?ltW // add0r ltr0_norm.
Qed.
End Distance.

Section Coupling.
Variables (R : realFieldType) (T : eqType) (vocab : seq T).
(* The target and what a run uses in its place: two decoders of laws. *)
Variables (p used : seq T -> T -> R).
Hypotheses (p_law : forall c, law vocab (p c)) (used_law : forall c, law vocab (used c)).

Fixpoint words n : seq (seq T) :=
  if n is n'.+1 then flatten [seq [seq x :: w | w <- words n'] | x <- vocab] else [:: [::]].

Lemma sum_words n f : sum_of (words n.+1) f = sum_of vocab (fun x => sum_of (words n) (fun w => f (x :: w))) :> R.
Proof. by rewrite /=; elim: vocab => //= x s IH; rewrite sum_cat sum_map IH. Qed.

(* The errors that a run of L tokens meets, added up and averaged over the run. *)
Fixpoint expected_error L c : R :=
  if L is L'.+1
  then excess vocab (p c) (used c) + sum_of vocab (fun v => used c v * expected_error L' (rcons c v))
  else 0.

Lemma text_ge0 c w : all (mem vocab) w -> 0 <= text_probability p c w.
Proof.
elim: w c => [|x w IH] c /=; first by rewrite ler01.
by case/andP => xV wV; rewrite mulr_ge0 ?IH // (law_ge0 (p_law c)).
Qed.

Lemma words_vocab n w : w \in words n -> all (mem vocab) w.
Proof.
elim: n w => [|n IH] w /=; first by rewrite inE => /eqP ->.
by move=> /flatten_mapP[x xV /mapP[w' /IH w'V ->]] /=; rewrite xV.
Qed.

Lemma words_total n c : sum_of (words n) (text_probability p c) = 1.
Proof.
elim: n c => [|n IH] c; first by rewrite /= addr0.
rewrite sum_words -[RHS](law_sum (p_law c)); apply: eq_sum => x.
by rewrite /= sum_mull IH mulr1.
Qed.

(* The first L tokens are off by no more than the expected sum of the errors on the way. *)
Theorem coupling_bound L c :
  excess (words L) (text_probability p c) (text_probability used c) <= expected_error L c.
Proof.
elim: L c => [|L IH] c; first by rewrite /excess /= subrr max_l // addr0.
pose P := text_probability p; pose U := text_probability used.
have step x w : x \in vocab -> w \in words L -> Num.max 0 (P c (x :: w) - U c (x :: w))
    <= Num.max 0 (p c x - used c x) * P (rcons c x) w
     + used c x * Num.max 0 (P (rcons c x) w - U (rcons c x) w).
  move=> xV wV; have P0 := text_ge0 (rcons c x) (words_vocab wV); have u0 := law_ge0 (used_law c) xV.
  rewrite le_maxl addr_ge0 ?mulr_ge0 ?le_maxr ?lexx //= /P /U -/text_probability.
  have -> : p c x * text_probability p (rcons c x) w - used c x * text_probability used (rcons c x) w
    = (p c x - used c x) * text_probability p (rcons c x) w
    + used c x * (text_probability p (rcons c x) w - text_probability used (rcons c x) w).
    by rewrite mulrBl mulrBr addrA subrK.
  by apply: ler_add; [apply: ler_wpmul2r|apply: ler_wpmul2l]; rewrite // le_maxr lexx orbT.
rewrite /excess sum_words /= -sum_add.
apply: sum_le => x xV; apply: le_trans (sum_le (fun w => step x w xV)) _.
rewrite sum_add !sum_mull words_total mulr1 ler_add2l; apply: ler_wpmul2l; first exact: (law_ge0 (used_law c) xV).
exact: IH.
Qed.
End Coupling.

(* Run: after one token the bound is met, and one step's error does not bound two tokens. *)
Lemma errors_add_up : let p := row [:: fraction 1 2; fraction 1 2] in let used := row [:: fraction 1 4; fraction 3 4] in
  [/\ excess (words (iota 0 2) 1) (text_probability p [::]) (text_probability used [::]) = fraction 1 4,
      expected_error (iota 0 2) p used 1 [::] = fraction 1 4,
      excess (words (iota 0 2) 2) (text_probability p [::]) (text_probability used [::]) = fraction 5 16
    & expected_error (iota 0 2) p used 2 [::] = fraction 1 2].
Proof. by split; apply/eqP; vm_compute. Qed.

(* ---- Algorithm 1's residual ---- *)
Section Residual.
Variables (R : realFieldType) (T : eqType) (vocab : seq T).
Variables (p p' t t' : T -> R).
Hypotheses (lp : law vocab p) (lp' : law vocab p') (lt : law vocab t) (lt' : law vocab t').
Notation tv := (excess vocab).
Notation Z := (spare vocab p t).
Notation Z' := (spare vocab p' t').
Notation gap x y := (fun v => Num.max 0 (x v - y v)).

Lemma gap_excess (x x' y y' : T -> R) : tv (gap x y) (gap x' y') <= tv x x' + tv y' y.
Proof.
rewrite -subr_ge0 -sum_add -sum_sub; apply: sum_ge0 => v _; rewrite subr_ge0.
rewrite le_maxl addr_ge0 ?le_maxr ?lexx //= ler_subl_addr le_maxl; apply/andP; split.
  by rewrite !addr_ge0 ?le_maxr ?lexx.
have -> : x v - y v = (x v - x' v) + (y' v - y v) + (x' v - y' v) by rewrite addrAC !addrA !subrK.
by rewrite !ler_add // le_maxr lexx orbT.
Qed.

Lemma excess_laws (x y : T -> R) : sum_of vocab x = sum_of vocab y -> tv x y = tv y x.
Proof. by move=> e; apply/eqP; rewrite -subr_eq0 excess_swap e subrr. Qed.

(* The chance to reach the residual times the residual's error is at most the rows' error. *)
Theorem residual_error : Z' != 0 ->
  Z * tv (residual vocab p t) (residual vocab p' t') <= tv p p' + tv t t'.
Proof.
move=> z'0; have [z0|zn0] := eqVneq Z 0; first by rewrite z0 mul0r addr_ge0 ?excess_ge0.
have a0 (x y : T -> R) v : v \in vocab -> 0 <= gap x y v by move=> _ /=; rewrite le_maxr lexx.
have zp : 0 < Z by rewrite lt_def zn0; apply: sum_ge0 => v; apply: a0.
have zp' : 0 < Z' by rewrite lt_def z'0; apply: sum_ge0 => v; apply: a0.
have swap : tv (residual vocab p t) (residual vocab p' t') = tv (residual vocab p' t') (residual vocab p t).
  by apply: excess_laws; rewrite /residual /normalise !sum_mulr !divff.
have scaled (x y x' y' : T -> R) : 0 < spare vocab x y -> 0 < spare vocab x' y' -> forall z, 0 < z ->
    (z / spare vocab x y <= 1) -> 1 <= z / spare vocab x' y' ->
    z * tv (residual vocab x y) (residual vocab x' y') <= tv (gap x y) (gap x' y').
  move=> s0 s0' z zz le1 ge1; rewrite /excess -sum_mull; apply: sum_le => v vV.
  rewrite (maxr_pmulr _ _ (ltW zz)) mulr0; apply: max0_mono.
  rewrite /residual /normalise -/(spare vocab x y) -/(spare vocab x' y') mulrBr ![z * (_ / _)]mulrCA.
  by apply: ler_sub; [apply: ler_pimulr le1|apply: ler_pemulr ge1]; apply: a0.
have [le|lt_] := leP Z Z'.
  rewrite swap; apply: le_trans (scaled _ _ _ _ zp' zp Z zp _ _) _.
  - by rewrite ler_pdivr_mulr // mul1r.
  - by rewrite divff.
  apply: le_trans (gap_excess _ _ _ _) _.
  by rewrite ler_add2r excess_laws // (law_sum lp) (law_sum lp').
apply: le_trans (scaled _ _ _ _ zp zp' Z zp _ _) _.
- by rewrite divff.
- by rewrite ler_pdivl_mulr // mul1r ltW.
apply: le_trans (gap_excess _ _ _ _) _.
by rewrite ler_add2l excess_laws // (law_sum lt) (law_sum lt').
Qed.
End Residual.

(* A small relative error of p by itself says nothing of the residual: here it is below
   2^-28 and the residuals have no token in common. *)
Section RelativeError.
Local Open Scope nat_scope.
Local Notation "a // b" := (fraction a b) (at level 40).
Let up := nth 0%R [:: 536870913 // 1073741824; 536870911 // 1073741824].
Let down := nth 0%R [:: 536870911 // 1073741824; 536870913 // 1073741824].
Let coins := nth 0%R [:: 1 // 2; 1 // 2].
Lemma relative_error_bounds_nothing :
  excess (iota 0 2) (residual (iota 0 2) up coins) (residual (iota 0 2) down coins) = 1 // 1
  /\ spare (iota 0 2) up coins = 1 // 1073741824
  /\ excess (iota 0 2) up down = 1 // 536870912.
Proof. by do !split; apply/eqP; vm_compute. Qed.
End RelativeError.

(* ---- drawing ---- *)
Section InverseCDF.
Variables (R : realFieldType).
Implicit Types (row : seq R) (u : R).

(* The weight before position i; the first position whose cumulative weight exceeds u times
   the sum, as SamplingChooser.index takes it. *)
Definition before row i : R := sum_of (take i row) id.
Definition position row u : nat := find (fun i => u * sum_of row id < before row i.+1) (iota 0 (size row)).

Lemma before_S row i : (i < size row)%N -> before row i.+1 = before row i + nth 0 row i.
Proof. by move=> lt; rewrite /before (take_nth 0 lt) -cats1 sum_cat /= addr0. Qed.

Lemma before_mono row i j : all (fun x => 0 <= x) row -> (i <= j)%N -> before row i <= before row j.
Proof.
move=> r0 /subnKC <-; rewrite /before takeD sum_cat ler_addl; apply: sum_ge0 => x xin.
by apply: (allP r0); apply: mem_drop (mem_take xin).
Qed.

Lemma position_interval row u i : all (fun x => 0 <= x) row -> 0 <= u -> (i < size row)%N ->
  (position row u == i) = (before row i <= u * sum_of row id < before row i.+1).
Proof.
move=> r0 u0 lt; set z := u * _; pose a j := z < before row j.+1.
have z0 : 0 <= z by rewrite mulr_ge0 //; apply: sum_ge0 => x; apply: (allP r0).
set k := position row u; have kE : k = find a (iota 0 (size row)) by [].
have below j : (j < k)%N -> before row j.+1 <= z.
  move=> jk; have jn : (j < size row)%N.
    by apply: leq_trans jk _; rewrite kE -[X in (_ <= X)%N](size_iota 0 (size row)) find_size.
  by have := jk; rewrite {1}kE => /(before_find 0%N) /negbT; rewrite nth_iota // add0n /a -leNgt.
have reached : (k < size row)%N -> z < before row k.+1.
  move=> kn; have h : has a (iota 0 (size row)) by rewrite has_find -kE size_iota.
  by have := nth_find 0%N h; rewrite -kE nth_iota // add0n.
apply/eqP/andP => [e|[lo hi]].
  rewrite -{2}e reached ?e //; split=> //; case: (i) e => [|j] e; first by rewrite /before take0.
  by apply: below; rewrite e.
apply/eqP; rewrite eqn_leq; apply/andP; split; rewrite leqNgt; apply/negP => less.
  by have := below i less; rewrite leNgt hi.
have := lt_le_trans (reached (ltn_trans less lt)) (before_mono r0 less).
by rewrite ltNge lo.
Qed.

(* Position i is drawn by the uniform numbers of one interval, as long as its share of the row. *)
Theorem inverse_cdf row u i : all (fun x => 0 <= x) row -> 0 < sum_of row id -> 0 <= u -> (i < size row)%N ->
  (position row u == i) = (before row i / sum_of row id <= u < before row i.+1 / sum_of row id)
  /\ before row i.+1 / sum_of row id - before row i / sum_of row id = nth 0 row i / sum_of row id.
Proof.
move=> r0 s0 u0 lt; split; first by rewrite position_interval // ler_pdivr_mulr // ltr_pdivl_mulr.
by rewrite -mulrBl before_S // [_ + nth _ _ _]addrC addrK.
Qed.

(* Each uniform number below 1 draws some position. *)
Theorem inverse_cdf_draws row u : all (fun x => 0 <= x) row -> 0 < sum_of row id -> u < 1 ->
  (position row u < size row)%N.
Proof.
move=> r0 s0 u1; have n0 : (0 < size row)%N by case: (row) s0 => //=; rewrite ltxx.
rewrite /position -[X in (_ < X)%N](size_iota 0 (size row)) -has_find; apply/hasP.
exists (size row).-1; first by rewrite mem_iota add0n prednK // leqnn.
by rewrite prednK // /before take_size -[X in _ < X]mul1r ltr_pmul2r.
Qed.
End InverseCDF.

(* Run on three rows; and "at least" in the place of "exceeds" would draw a token of weight 0. *)
Section Drawing.
Local Open Scope nat_scope.
Local Notation "a // b" := (fraction a b) (at level 40).
Let row3 := [:: 0 // 1; 1 // 4; 3 // 4] : seq Qc.
Lemma drawn_positions : map (position row3) [:: 0 // 1; 1 // 5; 1 // 4; 99 // 100] = [:: 1; 1; 2; 2]
  /\ find (fun i => (0 // 1 <= before row3 i.+1)%R) (iota 0 3) = 0.
Proof. by split; vm_compute. Qed.
End Drawing.
