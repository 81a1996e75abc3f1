(* Theorem 3: how often one pool of n candidates is accepted under Algorithm 1, for every
   vocabulary, lead, target and tail law; and its upper bound. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Rates.
Variables (R : realFieldType) (T : eqType).
(* The vocabulary in draft order, the target, the tail law; n = k + 1 candidates. *)
Variables (l : seq T) (x0 : T) (p t : T -> R) (m k : nat).
Hypotheses (ul : uniq l) (lp : law l p) (lt : law l t).
Hypothesis lead0 : forall v, v \in take m l -> t v = 0.
Hypotheses (mk : (m <= k)%N) (kl : (k < size l)%N).

Notation r := (residual l p t).
Definition top j := take j l.
Definition nth_token := nth x0 l k.

(* The candidates beside the sampled token y: the leads and the best n - m - 1 others. *)
Definition others y := take m l ++ take (k - m) [seq x <- drop m l | x != y].

(* The probability that some candidate is accepted: y from the tail law, its coin, then
   recursive rejection over the others, which is worth 1 where it accepts. *)
Definition acceptance : R := sum_of l (fun y => t y * (coin p t y
  + (1 - coin p t y) * reject l id (others y) r (fun=> 1) (fun=> 0))).

Lemma sum_take_without (s : seq T) (f : T -> R) y j : uniq s ->
  sum_of (take j [seq x <- s | x != y]) f
  = if y \in take j s then sum_of (take j.+1 s) f - f y else sum_of (take j s) f.
Proof.
elim: s j => [|a s IH] j //= /andP[an us]; have [ay|ay] /= := eqVneq a y.
  rewrite ay in an *; have -> : [seq x <- s | x != y] = s.
    by apply/all_filterP/allP => x xs; apply: contraNneq an => <-.
  by case: j => [|j] /=; rewrite ?take0 // inE eqxx /= [f y + _]addrC addrK.
case: j => [|j] /=; first by [].
rewrite inE eq_sym (negbTE ay) /= IH //; case: ifP => _ //.
by rewrite addrA.
Qed.

Let r0 : {in l, forall v, 0 <= Num.max 0 (p v - t v)}.
Proof. by move=> v _; rewrite le_maxr lexx. Qed.
Let s0 : {in l, forall v, 0 <= Num.max 0 (t v - p v)}.
Proof. by move=> v _; rewrite le_maxr lexx. Qed.
Definition spare := sum_of l (fun v => Num.max 0 (p v - t v)).

Lemma spareE : sum_of l (fun v => Num.max 0 (t v - p v)) = spare.
Proof.
have split v : Num.max 0 (t v - p v) = t v - p v + Num.max 0 (p v - t v).
  have [h|h] := leP (t v) (p v).
    by rewrite max_l ?subr_le0 // max_r ?subr_ge0 // -opprB addNr.
  by rewrite max_r ?subr_ge0 ?ltW // max_l ?addr0 // subr_le0 ltW.
rewrite (eq_sum _ split) sum_add sum_sub (law_sum lp) (law_sum lt) subrr add0r.
by [].
Qed.

Lemma spare_residual v : v \in l -> spare * r v = Num.max 0 (p v - t v).
Proof.
move=> vl; rewrite /residual /normalise -/spare; have [z0|zn0] := eqVneq spare 0.
  by rewrite z0 mul0r (sum_eq0 r0 z0).
by rewrite mulrCA divff ?mulr1.
Qed.

Lemma residual_ge0 v : v \in l -> 0 <= r v.
Proof. by move=> vl; rewrite divr_ge0 ?r0 ?sum_ge0. Qed.

Lemma rejected v : v \in l -> t v * (1 - coin p t v) = Num.max 0 (t v - p v).
Proof.
move=> vl; rewrite mulrBr mulr1 coinE ?(law_ge0 lt) ?(law_ge0 lp) //.
have [h|h] := leP (t v) (p v); first by rewrite subrr max_l // subr_le0.
by rewrite max_r // subr_ge0 ltW.
Qed.

(* Where the coin can fail the residual is nothing. *)
Lemma residual_under v : Num.max 0 (t v - p v) != 0 -> r v = 0.
Proof.
have [h|h] := leP (t v) (p v); first by rewrite max_l ?eqxx // subr_le0.
by move=> _; rewrite /residual /normalise max_l ?mul0r // subr_le0 ltW.
Qed.

Lemma in_lead_or_rest y : y \in l -> y \in take m l \/ y \in drop m l.
Proof. by rewrite -{1}(cat_take_drop m l) mem_cat => /orP. Qed.

Lemma top_split j : (m <= j)%N -> top j = take m l ++ take (j - m) (drop m l).
Proof. by move=> mj; rewrite -takeD subnKC. Qed.

Lemma taken_or_dropped j v : v \in drop j l -> (v \in take j l) = false.
Proof.
move=> vd; apply/negP => vt; move: ul; rewrite -(cat_take_drop j l) cat_uniq.
by case/and3P=> _ /hasPn /(_ v vd); rewrite /= vt.
Qed.

Lemma sum_others y : y \in drop m l -> sum_of (others y) r
  = if y \in top k then sum_of (top k.+1) r - r y else sum_of (top k) r.
Proof.
move=> yr; have nl := taken_or_dropped yr.
rewrite sum_cat sum_take_without ?drop_uniq // !top_split ?leqW // mem_cat nl /= subSn // !sum_cat.
by case: ifP => _; rewrite ?addrA.
Qed.

Lemma others_uniq y : uniq (others y).
Proof.
rewrite /others cat_uniq take_uniq // take_uniq ?filter_uniq ?drop_uniq // andbT /=.
apply/hasPn => x /mem_take; rewrite mem_filter => /andP[_ xr].
by rewrite /= taken_or_dropped.
Qed.

Lemma others_vocab y : all (fun u => u \in l) (others y).
Proof.
rewrite all_cat; apply/andP; split; apply/allP => x /mem_take //.
by rewrite mem_filter => /andP[_ /mem_drop].
Qed.

Lemma top_S : sum_of (top k.+1) r = sum_of (top k) r + r nth_token.
Proof. by rewrite /top (take_nth x0 kl) -cats1 sum_cat /= addr0. Qed.

Lemma acceptance_mass : acceptance = sum_of l (fun y => Num.min (t y) (p y))
  + spare * sum_of (top k) r
  + r nth_token * sum_of (top k) (fun y => Num.max 0 (t y - p y)).
Proof.
have inner y : y \in l -> t y * (coin p t y
    + (1 - coin p t y) * reject l id (others y) r (fun=> 1) (fun=> 0))
  = Num.min (t y) (p y) + (Num.max 0 (t y - p y) * sum_of (top k) r
    + r nth_token * (if y \in top k then Num.max 0 (t y - p y) else 0)).
  move=> yl; have [ty|ty] := eqVneq (t y) 0.
    have py : 0 <= p y by apply: law_ge0 yl.
    by rewrite ty mul0r min_l // max_l ?subr_le0 // if_same mul0r mulr0 !addr0.
  rewrite mulrDr coinE ?(law_ge0 lt) ?(law_ge0 lp) //; congr (_ + _).
  rewrite mulrA rejected //; have [z|zn] := eqVneq (Num.max 0 (t y - p y)) 0.
    by rewrite z !mul0r if_same mulr0 addr0.
  have yr : y \in drop m l.
    by case: (in_lead_or_rest yl) => // /lead0 e; rewrite e eqxx in ty.
  have rl : law l r.
    have [c1|//] := residual_law lp lt yl ty.
    by move: zn; rewrite -rejected // c1 subrr mulr0 eqxx.
  have none : sum_of l (fun v => if v \in others y then 0 else r v * 0) = 0.
    by rewrite sum_ofE big1 // => v _; rewrite mulr0 if_same.
  rewrite reject_law ?map_id ?others_uniq ?others_vocab // none addr0.
  rewrite (eq_sum _ (g := r)); last by move=> u; rewrite mulr1.
  rewrite sum_others // (residual_under zn) subr0; case: ifP => _; last by rewrite mulr0 addr0.
  by rewrite top_S mulrDr [r _ * _]mulrC.
rewrite /acceptance (eq_sum_in inner) !sum_add sum_mulr spareE sum_mull addrA; congr (_ + _ * _).
rewrite -sum_filter; apply: sum_perm; apply: uniq_perm; rewrite ?filter_uniq ?take_uniq //.
by move=> v; rewrite mem_filter andb_idr // => /mem_take.
Qed.

Lemma sum_top_or_rest (f g : T -> R) :
  sum_of l (fun v => if v \in top k then f v else g v)
  = sum_of (top k) f + sum_of (drop k l) g.
Proof.
rewrite -{1}(cat_take_drop k l) sum_cat; congr (_ + _); apply: eq_sum_in => v vin.
  by rewrite /top vin.
by rewrite /top taken_or_dropped.
Qed.

(* Theorem 3, the equality (n = k + 1; the tokens outside Top_(n-1) are drop k l). *)
Theorem rheo_rate : acceptance = sum_of (top k) p + sum_of (drop k l) (fun v => Num.min (p v) (t v))
  + r nth_token * sum_of (top k) (fun v => Num.max 0 (t v - p v)).
Proof.
rewrite acceptance_mass; congr (_ + _); rewrite -sum_mull -{1}(cat_take_drop k l) sum_cat addrAC.
congr (_ + _); last by apply: eq_sum => v; apply: minC.
rewrite -sum_add; apply: eq_sum_in => v /mem_take vl.
by rewrite spare_residual // -min_max_split.
Qed.

(* Theorem 3, the inequality. *)
Theorem rheo_rate_bound :
  acceptance <= sum_of (top k.+1) p + sum_of (drop k.+1 l) (fun v => Num.min (p v) (t v)).
Proof.
have nl : nth_token \in l by rewrite mem_nth.
rewrite rheo_rate (drop_nth x0 kl) sum_cons -/nth_token.
have -> : sum_of (top k.+1) p = sum_of (top k) p + p nth_token.
  by rewrite /top (take_nth x0 kl) -cats1 sum_cat /= addr0.
rewrite -addrA -[leRHS]addrA ler_add2l addrAC ler_add2r.
rewrite {2}(min_max_split p t nth_token) [Num.min (p _) _]minC ler_add2l -spare_residual //.
have -> : spare = sum_of (top k) (fun v => Num.max 0 (t v - p v))
    + sum_of (drop k l) (fun v => Num.max 0 (t v - p v)).
  by rewrite -spareE -sum_cat cat_take_drop.
rewrite mulrC ler_wpmul2r ?residual_ge0 // ler_addl.
by apply: sum_ge0 => v /mem_drop; apply: s0.
Qed.

(* A_Rheo is at most the optimum's closed form (that no rule does better on one pool is
   not proved here). *)
Theorem rheo_rate_optimum : acceptance <= sum_of (top k) p
  + Num.min (p nth_token) (sum_of (top k.+1) t) + sum_of (drop k.+1 l) (fun v => Num.min (p v) (t v)).
Proof.
have nl : nth_token \in l by rewrite mem_nth.
set S := sum_of (top k) (fun v => Num.max 0 (t v - p v)).
have S0 : 0 <= S by apply: sum_ge0 => v /mem_take; apply: s0.
rewrite rheo_rate -/S (drop_nth x0 kl) sum_cons -/nth_token.
rewrite -addrA -[leRHS]addrA ler_add2l addrAC ler_add2r le_minr; apply/andP; split.
  rewrite {2}(min_max_split p t nth_token) [Num.min (p _) _]minC ler_add2l -spare_residual //.
  have -> : spare = S + sum_of (drop k l) (fun v => Num.max 0 (t v - p v)).
    by rewrite -spareE -sum_cat cat_take_drop.
  rewrite mulrC ler_wpmul2r ?residual_ge0 // ler_addl.
  by apply: sum_ge0 => v /mem_drop; apply: s0.
have -> : sum_of (top k.+1) t = t nth_token + sum_of (top k) t.
  by rewrite /top (take_nth x0 kl) -cats1 sum_cat /= addr0 addrC.
apply: ler_add; first by rewrite le_minl lexx orbT.
have S_t : S <= sum_of (top k) t.
  rewrite -subr_ge0 -sum_sub; apply: sum_ge0 => v /mem_take vl; rewrite subr_ge0 le_maxl.
  by rewrite (law_ge0 lt) //= ler_subl_addr ler_addl (law_ge0 lp).
apply: le_trans S_t; rewrite -[leRHS]mul1r ler_wpmul2r //.
have [z0|zn0] := eqVneq spare 0; last by apply: law_le1 nl; apply: normalise_law.
by rewrite /residual /normalise -/spare z0 invr0 mulr0 ler01.
Qed.

(* Without a sampled token the best n tokens are accepted with their own probability. *)
Theorem plain_rate n : reject l id (top n) p (fun=> 1) (fun=> 0) = sum_of (top n) p.
Proof.
rewrite reject_law ?map_id ?take_uniq //; last by apply/allP => v /mem_take.
rewrite [X in _ + X]sum_ofE big1 => [|v _]; last by rewrite mulr0 if_same.
by rewrite addr0; apply: eq_sum => v; rewrite mulr1.
Qed.
End Rates.
