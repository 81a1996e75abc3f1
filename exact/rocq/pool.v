(* The candidate pool of one parent (section 3.2, appendix C.1): lead tokens, the
   sampled slot with its proxy, fill tokens. Slots count from 0. A pool whose
   sampled token is not drawn yet shows its leads and its sampled slot only. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Pool.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
(* q ranks, s is sampled from: functions of the prefix. One may be given for both. *)
Variables (q s : seq T -> T -> R).
Variables (m K : nat).
(* What the sampled token is worth in the ranking. Its second argument is the sampled
   token: the theorem assumes that it does not matter; a wrong proxy may read it. *)
Variable proxy : seq T -> T -> R.

Definition order c : seq T := sort (fun a b => q c b <= q c a) vocab.
Definition lead c := take m (order c).
Definition rest c := drop m (order c).
Definition mass c : R := sum_of (rest c) (s c).
Definition has_sampled c := (m < K)%N && (0 < mass c).
Definition tail c : T -> R := let z := mass c in fun v => if v \in rest c then s c v / z else 0.
Definition support c := [seq v <- rest c | 0 < s c v].

(* The paper's proxy: min{q(x_m), z}; with m = 0, q(x_1) (the slot comes first anyway). *)
Definition rheo_proxy c (_ : T) : R :=
  if m is m'.+1 then Num.min (q c (nth blank (order c) m')) (sum_of (rest c) (q c))
  else q c (nth blank (order c) 0).

(* An entry: slot, kind (0 lead, 1 sampled, 2 fill), token, path score. *)
Definition entry := (nat * nat * T * R)%type.
Definition slot_of (e : entry) := e.1.1.1.
Definition kind_of (e : entry) := e.1.1.2.
Definition token_of (e : entry) := e.1.2.
Definition score_of (e : entry) := e.2.

Definition entries kind start c (S : R) (xs : seq T) : seq entry :=
  [seq (ix.1, kind, ix.2, S * q c ix.2) | ix <- zip (iota start (size xs)) xs].

Definition tail_entries c S (y : option T) : seq entry :=
  if has_sampled c then
    (m, 1%N, odflt blank y, S * proxy c (odflt blank y))
      :: (if y is Some v then entries 2 m.+1 c S [seq x <- rest c | x != v] else [::])
  else entries 2 m c S (rest c).

(* S is the parent's path score, y the sampled token if it is drawn. *)
Definition pool c S y : seq entry := take K (entries 0 0 c S (lead c) ++ tail_entries c S y).

(* ---- facts ---- *)
Lemma entries_slots kind start c S xs : map slot_of (entries kind start c S xs) = iota start (size xs).
Proof.
by rewrite /entries -map_comp -[RHS](@unzip1_zip _ _ (iota start (size xs)) xs) ?size_iota //.
Qed.

Lemma entries_tokens kind start c S xs : map token_of (entries kind start c S xs) = xs.
Proof.
by rewrite /entries -map_comp -[RHS](@unzip2_zip _ _ (iota start (size xs)) xs) ?size_iota //.
Qed.

Lemma entries_inv kind start c S xs e : e \in entries kind start c S xs ->
  [/\ kind_of e = kind, (start <= slot_of e)%N, (slot_of e < start + size xs)%N,
      token_of e \in xs & score_of e = S * q c (token_of e)].
Proof.
move=> ein; have := map_f slot_of ein; have := map_f token_of ein.
rewrite entries_slots entries_tokens mem_iota => txs /andP[lo hi].
by case/mapP: ein lo hi txs => -[i x] _ ->.
Qed.

Lemma mem_order c v : (v \in order c) = (v \in vocab).
Proof. exact: mem_sort. Qed.

Lemma rest_vocab c v : v \in rest c -> v \in vocab.
Proof. by move/mem_drop; rewrite mem_order. Qed.

Lemma lead_vocab c v : v \in lead c -> v \in vocab.
Proof. by move/mem_take; rewrite mem_order. Qed.

Lemma lead_rest c : lead c ++ rest c = order c.
Proof. exact: cat_take_drop. Qed.

Lemma support_rest c v : v \in support c -> v \in rest c.
Proof. by rewrite mem_filter => /andP[]. Qed.

Lemma order_sorted c : sorted (fun a b => q c b <= q c a) (order c).
Proof. by apply: sort_sorted => a b; apply: le_total. Qed.

Lemma rest_le c i v : v \in rest c -> (i <= m)%N -> q c v <= q c (nth blank (order c) i).
Proof.
move=> vr im; case/(nthP blank): vr => j jlt <-; rewrite nth_drop.
rewrite size_drop ltn_subRL in jlt.
apply: (sorted_leq_nth _ _ _ (order_sorted c) i (m + j)%N) => //.
- by move=> a b d ba da; apply: le_trans da ba.
- by rewrite inE (leq_ltn_trans im) // (leq_ltn_trans _ jlt) ?leq_addr.
- exact: leq_trans im (leq_addr _ _).
Qed.

Lemma has_sampled_lead c : has_sampled c -> size (lead c) = m.
Proof.
case/andP => _ mass0; rewrite size_takel //; rewrite leqNgt; apply/negP => lt.
by move: mass0; rewrite /mass /rest drop_oversize ?ltxx // ltnW.
Qed.

Hypothesis uniq_vocab : uniq vocab.

Lemma order_uniq c : uniq (order c).
Proof. by rewrite sort_uniq. Qed.

Lemma rest_uniq c : uniq (rest c).
Proof. exact/drop_uniq/order_uniq. Qed.

Lemma lead_rest_disjoint c v : v \in lead c -> v \in rest c -> False.
Proof.
have := order_uniq c; rewrite -lead_rest cat_uniq => /and3P[_ /hasPn dis _] vl vr.
by move: (dis _ vr); rewrite /= vl.
Qed.

Lemma pool_slots_uniq c S y : uniq (map slot_of (pool c S y)).
Proof.
rewrite map_take take_uniq // map_cat entries_slots /tail_entries; case: ifP => [hs|_].
  have slots n : uniq (iota 0 m ++ m :: iota m.+1 n).
    by rewrite -[m :: _]/(iota m n.+1) -{2}(add0n m) -iotaD iota_uniq.
  rewrite has_sampled_lead //=; case: y => [v|] /=; last exact: slots 0%N.
  by rewrite entries_slots.
rewrite entries_slots cat_uniq !iota_uniq andbT /=; apply/hasPn => i.
rewrite mem_iota => /andP[mi _]; rewrite /= mem_iota add0n /= -leqNgt (leq_trans _ mi) //.
by rewrite size_take; case: ltnP.
Qed.

Lemma pool_slot_inj c S y e e' : e \in pool c S y -> e' \in pool c S y ->
  slot_of e = slot_of e' -> e = e'.
Proof.
move=> ein e'in eqs; case/(nthP e): ein => i ilt ei; case/(nthP e): e'in => j jlt ej.
have := nth_uniq 0%N _ _ (pool_slots_uniq c S y).
move=> /(_ i j); rewrite !size_map ilt jlt => /(_ isT isT).
by rewrite !(nth_map e) // ei ej eqs eqxx => /esym/eqP ij; rewrite -ei -ej ij.
Qed.

(* Tokens of a pool are distinct when the sampled one is off the lead, as a drawn one is. *)
Lemma pool_tokens_uniq c S y : (has_sampled c -> y \in rest c) ->
  uniq (map token_of (pool c S (Some y))).
Proof.
move=> yr; rewrite map_take take_uniq // map_cat entries_tokens /tail_entries.
have := order_uniq c; rewrite -lead_rest !cat_uniq => /and3P[-> /hasPn dis ur] /=.
case: ifP => [hs|_]; last by rewrite entries_tokens ur andbT; apply/hasPn.
rewrite /= entries_tokens mem_filter eqxx /= filter_uniq // andbT.
rewrite negb_or (dis y (yr hs)) /=; apply/hasPn => x; rewrite mem_filter => /andP[_].
exact: dis.
Qed.

Lemma pool_vocab c S y e : (has_sampled c -> y \in rest c) ->
  e \in pool c S (Some y) -> token_of e \in vocab.
Proof.
move=> yr /mem_take; rewrite mem_cat => /orP[/entries_inv[_ _ _ /lead_vocab //]|].
rewrite /tail_entries; case: ifP => [hs|_]; last by case/entries_inv => _ _ _ /rest_vocab.
rewrite inE => /orP[/eqP -> /=|/entries_inv[_ _ _]]; first exact: rest_vocab (yr hs).
by rewrite mem_filter => /andP[_ /rest_vocab].
Qed.

Lemma pool_lead_token c S y e : e \in pool c S y -> kind_of e = 0%N -> token_of e \in lead c.
Proof.
move/mem_take; rewrite mem_cat => /orP[/entries_inv[_ _ _ //]|].
rewrite /tail_entries; case: ifP => _.
  by rewrite inE => /orP[/eqP -> //|]; case: y => // v /entries_inv[-> //].
by case/entries_inv => ->.
Qed.

Lemma pool_sampled c S y e : e \in pool c S y -> kind_of e = 1%N ->
  has_sampled c /\ e = (m, 1%N, odflt blank y, S * proxy c (odflt blank y)).
Proof.
move/mem_take; rewrite mem_cat => /orP[/entries_inv[-> //]|].
rewrite /tail_entries; case: ifP => hs; last by case/entries_inv => ->.
by rewrite inE => /orP[/eqP -> //|]; case: y => // v /entries_inv[-> //].
Qed.

(* The sampled slot is always shown. *)
Lemma sampled_in_pool c S y : has_sampled c ->
  (m, 1%N, odflt blank y, S * proxy c (odflt blank y)) \in pool c S y.
Proof.
move=> hs; rewrite /pool /tail_entries hs; have /andP[mK _] := hs.
have sz : size (entries 0 0 c S (lead c)) = m.
  by rewrite -(size_map slot_of) entries_slots size_iota has_sampled_lead.
rewrite take_cat sz ltnNge ltnW //= mem_cat; apply/orP; right.
by rewrite -(subnK mK) addnS subSn ?leq_addl // addnK /= mem_head.
Qed.

(* A pool before its draw: the leads and the sampled slot. *)
Lemma pool_none c S y e : e \in pool c S None -> kind_of e != 1%N -> e \in pool c S (Some y).
Proof.
rewrite /pool /tail_entries; case: ifP => // hs.
have sz : size (entries 0 0 c S (lead c)) = m.
  by rewrite -(size_map slot_of) entries_slots size_iota has_sampled_lead.
have /andP[mK _] := hs.
rewrite !take_cat sz ltnNge ltnW //= !mem_cat => /orP[-> //|].
by rewrite -(subnK mK) addnS subSn ?leq_addl // addnK /= inE => /eqP ->.
Qed.

Lemma pool_some c S y e : has_sampled c -> e \in pool c S (Some y) -> kind_of e = 0%N ->
  e \in pool c S None.
Proof.
move=> hs; rewrite /pool /tail_entries hs.
have sz : size (entries 0 0 c S (lead c)) = m.
  by rewrite -(size_map slot_of) entries_slots size_iota has_sampled_lead.
have /andP[mK _] := hs.
rewrite !take_cat sz ltnNge ltnW //= !mem_cat => /orP[-> //|].
rewrite -(subnK mK) addnS subSn ?leq_addl // addnK /= inE => /orP[/eqP -> //|].
by move/mem_take/entries_inv => [->].
Qed.

Lemma pool_kind c S y e : e \in pool c S y -> (kind_of e < 3)%N.
Proof.
move/mem_take; rewrite mem_cat => /orP[/entries_inv[-> //]|].
rewrite /tail_entries; case: ifP => _; last by case/entries_inv => ->.
by rewrite inE => /orP[/eqP -> //|]; case: y => // v /entries_inv[-> //].
Qed.

(* A fill beside a sampled slot: drawn already, to its right, a token of the tail. *)
Lemma pool_fill c S y e : has_sampled c -> e \in pool c S y -> kind_of e = 2%N ->
  [/\ y, (m < slot_of e)%N, token_of e \in rest c & score_of e = S * q c (token_of e)].
Proof.
move=> hs /mem_take; rewrite mem_cat => /orP[/entries_inv[-> //]|].
rewrite /tail_entries hs inE => /orP[/eqP -> //|]; case: y => // v.
by case/entries_inv => _ lo _ +; rewrite mem_filter => /andP[_ tr] sc _.
Qed.

Section Scores.
Variables (c : seq T).
Hypothesis q_law : law vocab (q c).
Hypothesis proxy_blind : forall y y', proxy c y = proxy c y'.
Hypothesis proxy_low : has_sampled c -> q c (nth blank (order c) m) <= proxy c blank.
Hypothesis proxy_high : has_sampled c -> proxy c blank <= 1.

(* Lemma 4: the sampled token ranks above every fill token, whatever it is. *)
Lemma local_ranking S y y' e : 0 <= S -> has_sampled c -> e \in pool c S (Some y) ->
  kind_of e = 2%N -> score_of e <= S * proxy c y'.
Proof.
move=> S0 hs ein ek; have [_ _ tr ->] := pool_fill hs ein ek.
rewrite (proxy_blind y' blank) ler_wpmul2l //.
exact: le_trans (rest_le tr (leqnn m)) (proxy_low hs).
Qed.

(* Lemma 5, one step: a child's path score is between 0 and its parent's. *)
Lemma child_score S y e : 0 <= S -> e \in pool c S y -> 0 <= score_of e <= S.
Proof.
move=> S0; have q01 v : v \in vocab -> 0 <= S * q c v <= S.
  move=> vV; rewrite mulr_ge0 ?(law_ge0 q_law) //=.
  by rewrite -[leRHS]mulr1 ler_wpmul2l // (law_le1 q_law).
move/mem_take; rewrite mem_cat => /orP[/entries_inv[_ _ _ /lead_vocab vV ->]|].
  exact: q01.
rewrite /tail_entries; case: ifP => hs; last first.
  by case/entries_inv => _ _ _ /rest_vocab vV ->; apply: q01.
rewrite inE => /orP[/eqP -> /=|].
  rewrite /score_of /= (proxy_blind _ blank).
  have mo : nth blank (order c) m \in vocab.
    rewrite -(mem_order c) mem_nth //.
    move/andP: hs => [_ mass0]; rewrite ltnNge; apply/negP => le.
    by move: mass0; rewrite /mass /rest drop_oversize ?ltxx.
  rewrite mulr_ge0 //=; last exact: le_trans (law_ge0 q_law mo) (proxy_low hs).
  by rewrite -[leRHS]mulr1 ler_wpmul2l // proxy_high.
case: y => // v /entries_inv[_ _ _]; rewrite mem_filter => /andP[_ /rest_vocab vV] ->.
exact: q01.
Qed.
End Scores.

(* The tail law is a law, on the non-lead tokens. *)
Section Tail.
Variables (c : seq T).
Hypothesis s_ge0 : {in vocab, forall v, 0 <= s c v}.

Lemma tail_support v : v \in support c -> tail c v = s c v / mass c.
Proof. by move=> /support_rest vr; rewrite /tail vr. Qed.

Lemma sum_tail (f : T -> R) :
  sum_of vocab (fun v => tail c v * f v) = sum_of (support c) (fun v => tail c v * f v).
Proof.
rewrite -(sum_perm _ (_ : perm_eq (order c) vocab)); last by rewrite perm_sort.
rewrite -lead_rest sum_cat (_ : sum_of (lead c) _ = 0) ?add0r; last first.
  rewrite -[RHS](mulr0 (sum_of (lead c) (fun=> 1))) -sum_mulr; apply: eq_sum_in => v vl.
  by rewrite /tail; case: ifP => [vr|_]; [case: (lead_rest_disjoint vl vr)|rewrite mul0r mulr0].
rewrite sum_filter; apply: eq_sum_in => v vr; case: ifP => //.
move/negbT; rewrite -leNgt => sle; rewrite /tail vr.
have /eqP -> : s c v == 0 by rewrite eq_le sle s_ge0 // (rest_vocab vr).
by rewrite !mul0r.
Qed.

Lemma tail_law : has_sampled c -> law vocab (tail c).
Proof.
case/andP => _ mass0; apply/andP; split.
  apply/allP => v vV; rewrite /tail; case: ifP => // vr; rewrite divr_ge0 ?s_ge0 //.
  exact: ltW.
rewrite (eq_sum _ (g := fun v => tail c v * 1)); last by move=> v; rewrite mulr1.
rewrite -(sum_perm _ (_ : perm_eq (order c) vocab)); last by rewrite perm_sort.
rewrite -lead_rest sum_cat (_ : sum_of (lead c) _ = 0) ?add0r; last first.
  rewrite -[RHS](mulr0 (sum_of (lead c) (fun=> 1))) -sum_mulr; apply: eq_sum_in => v vl.
  by rewrite /tail; case: ifP => [vr|_]; [case: (lead_rest_disjoint vl vr)|rewrite mul0r mulr0].
rewrite (eq_sum_in (g := fun v => s c v * (mass c)^-1)); last first.
  by move=> v vr; rewrite /tail vr mulr1.
by rewrite sum_mulr divff // gt_eqF.
Qed.

Lemma tail_support1 : has_sampled c -> sum_of (support c) (tail c) = 1.
Proof.
move=> hs; rewrite -(law_sum (tail_law hs)).
rewrite (eq_sum (support c) (g := fun v => tail c v * 1)); last by move=> v; rewrite mulr1.
by rewrite -sum_tail; apply: eq_sum => v; rewrite mulr1.
Qed.
End Tail.
End Pool.
