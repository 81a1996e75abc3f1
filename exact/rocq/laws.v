(* Laws on a finite vocabulary and the two steps of Algorithm 1 (the coin on the
   sampled token, the rejection over the rest), as exact finite sums. Everything is
   computable: over rationals these definitions run, over any real field they are
   what the theorems speak of. *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Total.
Variable R : realFieldType.

(* The sum of f over a list: a fold, so that it computes. *)
Definition sum_of (A : Type) (s : seq A) (f : A -> R) : R :=
  foldr (fun x acc => f x + acc) 0 s.

Lemma sum_ofE A (s : seq A) f : sum_of s f = \sum_(x <- s) f x.
Proof. by rewrite unlock /sum_of /reducebig; elim: s => //= x s ->. Qed.

Lemma sum_cons A x (s : seq A) f : sum_of (x :: s) f = f x + sum_of s f.
Proof. by []. Qed.

Lemma sum_cat A (s t : seq A) f : sum_of (s ++ t) f = sum_of s f + sum_of t f.
Proof. by rewrite !sum_ofE big_cat. Qed.

Lemma sum_map A B (h : A -> B) s f : sum_of (map h s) f = sum_of s (fun x => f (h x)).
Proof. by rewrite !sum_ofE big_map. Qed.

Lemma eq_sum A (s : seq A) f g : f =1 g -> sum_of s f = sum_of s g.
Proof. by move=> fg; rewrite !sum_ofE; apply: eq_bigr => x _. Qed.

Lemma eq_sum_in (A : eqType) (s : seq A) f g :
  {in s, f =1 g} -> sum_of s f = sum_of s g.
Proof. by move=> fg; rewrite !sum_ofE; apply: eq_big_seq. Qed.

Lemma sum_mull A (s : seq A) c f : sum_of s (fun x => c * f x) = c * sum_of s f.
Proof. by rewrite !sum_ofE mulr_sumr. Qed.

Lemma sum_mulr A (s : seq A) c f : sum_of s (fun x => f x * c) = sum_of s f * c.
Proof. by rewrite !sum_ofE mulr_suml. Qed.

Lemma sum_add A (s : seq A) f g :
  sum_of s (fun x => f x + g x) = sum_of s f + sum_of s g.
Proof. by rewrite !sum_ofE big_split. Qed.

Lemma sum_sub A (s : seq A) f g :
  sum_of s (fun x => f x - g x) = sum_of s f - sum_of s g.
Proof. by rewrite !sum_ofE sumrB. Qed.

Lemma sum_swap A B (s : seq A) (t : seq B) f :
  sum_of s (fun x => sum_of t (f x)) = sum_of t (fun y => sum_of s (fun x => f x y)).
Proof.
rewrite !sum_ofE (eq_bigr (fun x => \sum_(y <- t) f x y)); last by move=> x _; rewrite sum_ofE.
by rewrite exchange_big; apply: eq_bigr => y _; rewrite sum_ofE.
Qed.

Lemma sum_ge0 (A : eqType) (s : seq A) f :
  {in s, forall x, 0 <= f x} -> 0 <= sum_of s f.
Proof. by move=> f0; rewrite sum_ofE big_seq sumr_ge0. Qed.

Lemma sum_eq0 (A : eqType) (s : seq A) f :
  {in s, forall x, 0 <= f x} -> sum_of s f = 0 -> {in s, forall x, f x = 0}.
Proof.
elim: s => //= x s IH f0 sum0 y.
have fx0 : 0 <= f x by apply: f0; rewrite mem_head.
have fs0 : {in s, forall z, 0 <= f z} by move=> z zs; apply: f0; rewrite inE zs orbT.
move: sum0 => /eqP; rewrite paddr_eq0 ?sum_ge0 // => /andP[/eqP x0 /eqP s0].
by rewrite inE => /predU1P[-> //|]; apply: IH.
Qed.

Lemma sum_filter A (s : seq A) (a : pred A) f :
  sum_of [seq x <- s | a x] f = sum_of s (fun x => if a x then f x else 0).
Proof. by rewrite !sum_ofE big_filter big_mkcond. Qed.

Lemma sum_perm (A : eqType) (s t : seq A) f : perm_eq s t -> sum_of s f = sum_of t f.
Proof. by move=> st; rewrite !sum_ofE; apply: perm_big. Qed.

Lemma sum_le_mem (A : eqType) (s : seq A) f x :
  {in s, forall y, 0 <= f y} -> x \in s -> f x <= sum_of s f.
Proof.
move=> f0 xs; rewrite (sum_perm f (perm_to_rem xs)) sum_cons ler_addl.
by apply: sum_ge0 => y /mem_rem; apply: f0.
Qed.
End Total.

Section Laws.
Variables (R : realFieldType) (T : eqType) (vocab : seq T).
Implicit Types (p t r : T -> R).

Definition law r := all (fun v => 0 <= r v) vocab && (sum_of vocab r == 1).

Lemma law_ge0 r : law r -> {in vocab, forall v, 0 <= r v}.
Proof. by case/andP => /allP. Qed.

Lemma law_sum r : law r -> sum_of vocab r = 1.
Proof. by case/andP => _ /eqP. Qed.

Lemma law_le1 r v : law r -> v \in vocab -> r v <= 1.
Proof. by move=> lr vV; rewrite -(law_sum lr) sum_le_mem //; apply: law_ge0. Qed.

(* The sum is taken once, when the law is made: cheap to run. *)
Definition normalise r : T -> R := let z := sum_of vocab r in fun v => r v / z.
Definition without (u : T) r : T -> R := fun v => if v == u then 0 else r v.
Definition residual p t : T -> R := normalise (fun v => Num.max 0 (p v - t v)).

(* Probability that the sampled token y is accepted, Algorithm 1, line 4. *)
Definition coin p t y : R := Num.min 1 (p y / t y).

Lemma normalise_law r :
  {in vocab, forall v, 0 <= r v} -> sum_of vocab r != 0 -> law (normalise r).
Proof.
move=> r0 z0; apply/andP; split.
  by apply/allP => v vV; rewrite divr_ge0 ?r0 ?sum_ge0.
by rewrite /normalise sum_mulr divff.
Qed.

Lemma sum_without u r : uniq vocab -> u \in vocab ->
  sum_of vocab (without u r) = sum_of vocab r - r u.
Proof.
move=> uV uin; rewrite !sum_ofE (bigD1_seq u) //= [in RHS](bigD1_seq u) //=.
rewrite /without eqxx add0r [r u + _]addrC addrK.
by apply: eq_bigr => v /negbTE ->.
Qed.

(* Two laws: the mass that p lacks under t is the mass that t lacks under p. *)
Lemma min_max_split p t v : p v = Num.min (t v) (p v) + Num.max 0 (p v - t v).
Proof.
case: (leP (t v) (p v)) => h; first by rewrite max_r ?subr_ge0 // addrC subrK.
by rewrite max_l ?addr0 // subr_le0 ltW.
Qed.

Lemma coinE p t v : 0 <= t v -> 0 <= p v -> t v * coin p t v = Num.min (t v) (p v).
Proof.
move=> t0 p0; rewrite /coin; have [tv0|tn0] := eqVneq (t v) 0.
  by rewrite tv0 mul0r min_l.
have tp : 0 < t v by rewrite lt_neqAle eq_sym tn0.
by rewrite minr_pmulr // mulr1 mulrCA divff // mulr1.
Qed.

(* A residual is a law unless there is nothing left, and then the coin accepts. *)
Lemma residual_law p t y : law p -> law t -> y \in vocab -> t y != 0 ->
  coin p t y = 1 \/ law (residual p t).
Proof.
move=> lp lt yV ty; set f := fun v => Num.max 0 (p v - t v).
have f0 : {in vocab, forall v, 0 <= f v} by move=> v _; rewrite le_maxr lexx.
have [z0|zn0] := eqVneq (sum_of vocab f) 0; last by right; apply: normalise_law.
left; have below v : v \in vocab -> p v <= t v.
  by move=> vV; have := sum_eq0 f0 z0 vV; rewrite /f => /eqP; rewrite eq_maxl subr_le0.
have gap0 : {in vocab, forall v, 0 <= t v - p v} by move=> v vV; rewrite subr_ge0 below.
have gap : sum_of vocab (fun v => t v - p v) = 0.
  by rewrite sum_sub (law_sum lp) (law_sum lt) subrr.
have /eqP := sum_eq0 gap0 gap yV; rewrite subr_eq0 => /eqP tp.
by rewrite /coin -tp divff // minxx.
Qed.

(* Eq. (6) with values attached: the sampled token is drawn from t and, if accepted,
   is worth g; if rejected the residual r is worth x. The whole is worth p of x as
   soon as x and g agree wherever t has mass. *)
Lemma sampled_step p t g x : law p -> law t ->
  {in vocab, forall v, t v != 0 -> x v = g v} ->
  sum_of vocab (fun y => t y * (coin p t y * g y
    + (1 - coin p t y) * sum_of vocab (fun v => residual p t v * x v)))
  = sum_of vocab (fun v => p v * x v).
Proof.
move=> lp lt xg.
have p0 := law_ge0 lp; have t0 := law_ge0 lt.
set X := sum_of _ (fun v => residual p t v * x v).
set Z := sum_of vocab (fun v => Num.max 0 (p v - t v)).
have Z0 : {in vocab, forall v, 0 <= Num.max 0 (p v - t v)} by move=> v _; rewrite le_maxr lexx.
have mass : sum_of vocab (fun y => t y * (1 - coin p t y)) = Z.
  rewrite (@eq_sum_in _ _ _ _ (fun y => t y - (p y - Num.max 0 (p y - t y)))).
    by rewrite !sum_sub (law_sum lp) (law_sum lt) opprB addrCA subrr addr0.
  by move=> y yV; rewrite mulrBr mulr1 coinE ?t0 ?p0 // {2}(min_max_split p t y) addrK.
have ZX : Z * X = sum_of vocab (fun v => Num.max 0 (p v - t v) * x v).
  rewrite -sum_mull; apply: eq_sum_in => v vV; rewrite /residual /normalise -/Z.
  have [z0|zn0] := eqVneq Z 0; last by rewrite mulrA mulrCA divff // mulr1.
  by rewrite z0 mul0r (sum_eq0 Z0 z0) // mul0r.
rewrite (@eq_sum_in _ _ _ _ (fun y => Num.min (t y) (p y) * x y + t y * (1 - coin p t y) * X)).
  rewrite sum_add sum_mulr mass ZX -sum_add; apply: eq_sum_in => v vV.
  by rewrite -mulrDl -min_max_split.
move=> y yV; rewrite mulrDr !mulrA coinE ?t0 ?p0 //; congr (_ + _).
have [ty0|/xg -> //] := eqVneq (t y) 0.
by rewrite ty0 min_l ?p0 // !mul0r.
Qed.

(* Eq. (6) itself: the probability of emitting w is p w. *)
Corollary emission_law p t w : uniq vocab -> law p -> law t -> w \in vocab ->
  sum_of vocab (fun y => t y * (coin p t y * (y == w)%:R + (1 - coin p t y) * residual p t w)) = p w.
Proof.
move=> uV lp lt wV.
have pick (f : T -> R) : sum_of vocab (fun v => f v * (v == w)%:R) = f w.
  rewrite sum_ofE (bigD1_seq w) //= eqxx mulr1 big1 ?addr0 // => v /negbTE ->.
  by rewrite mulr0.
rewrite -[RHS](pick p).
rewrite -(@sampled_step p t (fun v => (v == w)%:R) (fun v => (v == w)%:R)) //.
by apply: eq_sum => y; rewrite pick.
Qed.

Lemma sum_without_list u s F : uniq vocab -> u \in vocab -> u \notin s ->
  sum_of vocab (fun v => if v \in s then 0 else F v)
  = F u + sum_of vocab (fun v => if v \in u :: s then 0 else F v) :> R.
Proof.
move=> uV uin us; rewrite !sum_ofE (bigD1_seq u) //= (negbTE us); congr (_ + _).
rewrite [RHS](bigD1_seq u) //= mem_head add0r; apply: eq_bigr => v /negbTE vu.
by rewrite inE vu.
Qed.

(* Values attached to some tokens, and a default for the rest, as one function. *)
Lemma sum_sublist (C : Type) (token : C -> T) (cands : seq C) (value : C -> R) (stop : T -> R) :
  uniq vocab -> uniq (map token cands) -> all (fun u => token u \in vocab) cands ->
  exists2 x : T -> R, (forall v, v \notin map token cands -> x v = stop v) &
  forall r, sum_of cands (fun u => r (token u) * value u)
    + sum_of vocab (fun v => if v \in map token cands then 0 else r v * stop v)
  = sum_of vocab (fun v => r v * x v).
Proof.
move=> uV; elim: cands => [|u us IH] /=.
  by exists stop => // r; rewrite add0r.
case/andP => unot uus /andP[uin usV]; have [x xs xr] := IH uus usV.
exists (fun v => if v == token u then value u else x v) => [v|r].
  by rewrite inE negb_or => /andP[/negbTE -> /xs].
have split F : sum_of vocab F = F (token u) + sum_of vocab (fun v => if v == token u then 0 else F v).
  rewrite !sum_ofE (bigD1_seq (token u)) //=; congr (_ + _).
  by rewrite [RHS](bigD1_seq (token u)) //= eqxx add0r; apply: eq_bigr => v /negbTE ->.
rewrite [RHS]split eqxx -addrA; congr (_ + _).
have := xr (without (token u) r); rewrite [X in _ = X](split) /without eqxx mul0r add0r => e.
rewrite [RHS](eq_sum _ (g := fun v => if v == token u then 0
  else (if v == token u then 0 else r v) * x v)); last by move=> v; case: (v == token u).
rewrite -e; congr (_ + _); last first.
  by apply: eq_sum => v; rewrite inE; case: eqP => //= _; rewrite mul0r if_same.
elim: us unot {IH uus usV xs xr e} => //= a l IHl; rewrite inE negb_or => /andP[ua ul].
by rewrite IHl // eq_sym (negbTE ua).
Qed.
End Laws.

Section Rejection.
Variables (R : realFieldType) (T : eqType) (vocab : seq T).
Variables (C : Type) (token : C -> T).
Implicit Types (r stop : T -> R) (value : C -> R).

(* Recursive rejection over a list of candidates (Algorithm 1, lines 12-19): value is
   what accepting a candidate is worth, stop what emitting a token from the final law is worth. *)
Fixpoint reject (cands : seq C) r value stop : R :=
  match cands with
  | [::] => sum_of vocab (fun v => r v * stop v)
  | u :: us => r (token u) * value u
      + (1 - r (token u)) * reject us (normalise vocab (without (token u) r)) value stop
  end.

(* Whatever the order of the candidates, each is accepted with exactly its
   probability under r, and every other token is emitted with its own. *)
Lemma reject_law cands r value stop :
  uniq vocab -> law vocab r -> uniq (map token cands) ->
  all (fun u => token u \in vocab) cands ->
  reject cands r value stop =
    sum_of cands (fun u => r (token u) * value u)
    + sum_of vocab (fun v => if v \in map token cands then 0 else r v * stop v).
Proof.
move=> uV; elim: cands r => [|u us IH] r lr /=; first by rewrite add0r.
case/andP=> unot uus /andP[uin allus].
have w0 : {in vocab, forall v, 0 <= without (token u) r v}.
  by move=> v vV; rewrite /without; case: ifP => // _; apply: law_ge0 vV.
have tw : sum_of vocab (without (token u) r) = 1 - r (token u).
  by rewrite sum_without // (law_sum lr).
have shape : sum_of us (fun u0 => r (token u0) * value u0)
    = sum_of us (fun u0 => without (token u) r (token u0) * value u0).
  elim: us unot {IH uus allus} => //= a s IHs; rewrite inE negb_or => /andP[ua us].
  by rewrite IHs // /without eq_sym (negbTE ua).
have shape2 : sum_of vocab (fun v => if v \in token u :: map token us then 0 else r v * stop v)
   = sum_of vocab (fun v => if v \in map token us then 0 else without (token u) r v * stop v).
  apply: eq_sum => v; rewrite inE /without; case: eqP => [->|_] //=.
  by rewrite mul0r if_same.
rewrite -addrA; congr (_ + _); rewrite shape shape2.
have [z0|zn0] := eqVneq (1 - r (token u)) 0.
  have all0 := sum_eq0 w0 (etrans tw z0).
  rewrite z0 mul0r -[LHS](addr0 0); congr (_ + _).
    elim: us allus {IH uus unot shape shape2} => //= a s IHs /andP[aV /IHs <-].
    by rewrite all0 // mul0r add0r.
  rewrite -[LHS](mulr0 (sum_of vocab r)) -sum_mulr; apply: eq_sum_in => v vV.
  by rewrite all0 // mul0r if_same mulr0.
rewrite IH //; last by apply: normalise_law; rewrite ?tw.
rewrite mulrDr -!sum_mull; congr (_ + _).
  by apply: eq_sum => a; rewrite /normalise tw mulrA mulrCA divff ?mulr1.
apply: eq_sum => v; case: ifP => _; first by rewrite mulr0.
by rewrite /normalise tw mulrA mulrCA divff ?mulr1.
Qed.

(* Sequential rejection outputs r: every candidate list, duplicates apart. *)
Corollary reject_output cands r w : uniq vocab -> law vocab r -> uniq (map token cands) ->
  all (fun u => token u \in vocab) cands -> w \in vocab ->
  reject cands r (fun u => (token u == w)%:R) (fun v => (v == w)%:R) = r w.
Proof.
move=> uV lr uc cin wV; rewrite reject_law //.
have one (s : seq T) : uniq s ->
    sum_of s (fun v => r v * (v == w)%:R) = if w \in s then r w else 0.
  elim: s => //= a s IH /andP[an us]; rewrite IH // inE eq_sym.
  have [<-|_] := eqVneq a w; last by rewrite mulr0 add0r.
  by rewrite mulr1 (negbTE an) addr0.
rewrite -(sum_map token cands (fun v => r v * (v == w)%:R)) one //.
rewrite (@eq_sum _ _ _ _ (fun v => (if v \in map token cands then 0 else r v) * (v == w)%:R)).
  rewrite sum_ofE (bigD1_seq w) //= eqxx mulr1 big1 ?addr0 //; last first.
    by move=> v /negbTE ->; rewrite mulr0.
  by case: ifP => _; rewrite ?addr0 ?add0r.
by move=> v; case: ifP; rewrite ?mul0r.
Qed.

(* Averaging the values of the candidates averages the whole. *)
Lemma reject_mean (I : Type) (ys : seq I) (w : I -> R) cands r (value : I -> C -> R) stop :
  sum_of ys w = 1 ->
  sum_of ys (fun y => w y * reject cands r (value y) stop)
  = reject cands r (fun u => sum_of ys (fun y => w y * value y u)) stop.
Proof.
move=> w1; elim: cands r => [|u us IH] r /=; first by rewrite sum_mulr w1 mul1r.
rewrite -IH -!sum_mull -sum_add; apply: eq_sum => y.
by rewrite mulrDr !(mulrCA (w y)).
Qed.

Lemma eq_reject cands r value value' stop : value =1 value' ->
  reject cands r value stop = reject cands r value' stop.
Proof. by move=> e; elim: cands r => //= u us IH r; rewrite e IH. Qed.
End Rejection.
