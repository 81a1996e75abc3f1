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
Implicit Types (u w P : node) (kept : seq node).
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

Lemma mean_verify d kept P : mean (verify d.+1 kept P) g =
  let c := tokens P in
  let value u := mean (verify d kept u) g in
  let whole r := reject vocab token (arrange c [seq v <- candidates_of kept P | ~~ is_sampled v]) r
    value (fun v => g (rcons c v)) in
  if [seq v <- candidates_of kept P | is_sampled v] is u :: _ then
    coin (p c) (tail c) (token u) * value u
    + (1 - coin (p c) (tail c) (token u)) * whole (residual vocab (p c) (tail c))
  else whole (p c).
Proof.
by rewrite /=; case: [seq v <- _ | is_sampled v] => [|u l]; rewrite ?mean_cat ?mean_scale mean_reject.
Qed.

(* Where nothing is kept, the target's own token comes next. *)
Lemma verify_leaf d kept P : candidates_of kept P = [::] -> mean (verify d kept P) g = g (tokens P).
Proof.
case: d => [|d] no; first by rewrite mean_emit -harmonic.
rewrite mean_verify no /=; have /perm_nilP -> := arrange_perm (tokens P) [::].
by rewrite /= -harmonic.
Qed.

(* ---- adding one node ---- *)
Definition whole kept P (value : node -> R) r :=
  let others := [seq v <- candidates_of kept P | ~~ is_sampled v] in
  sum_of others (fun u => r (token u) * value u)
  + sum_of vocab (fun v => if v \in map token others then 0 else r v * g (rcons (tokens P) v)).

Lemma reject_whole kept P value r : uniq vocab -> law vocab r ->
  let others := [seq v <- candidates_of kept P | ~~ is_sampled v] in
  uniq (map token others) -> all (fun u => token u \in vocab) others ->
  reject vocab token (arrange (tokens P) others) r value (fun v => g (rcons (tokens P) v))
  = whole kept P value r.
Proof.
move=> uV lr others uo oV; have ap := arrange_perm (tokens P) others.
rewrite reject_law //; first last.
- by rewrite (perm_all _ ap).
- by rewrite (perm_uniq (perm_map token ap)).
rewrite /whole -/others (sum_perm _ ap); congr (_ + _).
by apply: eq_sum => v; rewrite (perm_mem (perm_map token ap)).
Qed.

Lemma candidates_rcons kept w P : candidates_of (rcons kept w) P
  = if is_child P w then rcons (candidates_of kept P) w else candidates_of kept P.
Proof. exact: filter_rcons. Qed.

Lemma child_size P v : is_child P v -> size v = (size P).+1.
Proof. by case: v => //= e Q /eqP ->. Qed.

Lemma reject_texts_in c cands r below below' : {in cands, below =1 below'} ->
  reject_texts c cands r below = reject_texts c cands r below'.
Proof.
elim: cands r => //= u us IH r same; rewrite same ?mem_head //; congr (_ ++ scale _ _).
by apply: IH => v vs; apply: same; rewrite inE vs orbT.
Qed.

(* Below the new node's parent nothing changes. *)
Lemma verify_below d kept w P u : is_child P w -> (size P < size u)%N ->
  verify d (rcons kept w) u = verify d kept u.
Proof.
move=> wP; elim: d u => [|d IH] u Pu //=.
have nu : is_child u w = false.
  by apply/negP => /child_size e; move: Pu; rewrite -ltnS -e (child_size wP) ltnn.
have rec v : v \in candidates_of kept u -> verify d (rcons kept w) v = verify d kept v.
  by rewrite mem_filter => /andP[/child_size sv _]; apply: IH; rewrite sv ltnW // ltnS.
rewrite candidates_rcons nu; set others := arrange _ _.
have reco r : reject_texts (tokens u) others r (verify d (rcons kept w))
    = reject_texts (tokens u) others r (verify d kept).
  apply: reject_texts_in => v; rewrite (perm_mem (arrange_perm _ _)) mem_filter => /andP[_].
  exact: rec.
case E: [seq v <- _ | is_sampled v] => [|v l]; rewrite !reco // rec //.
have : v \in v :: l by rewrite mem_head.
by rewrite -E mem_filter => /andP[].
Qed.

(* From a change at one parent to the whole tree: averages pass through. *)
Lemma verify_average (I : Type) (ys : seq I) (wt : I -> R) (new : I -> node) kept Q :
  sum_of ys wt = 1 -> (forall y, is_child Q (new y)) ->
  (forall d, sum_of ys (fun y => wt y * mean (verify d.+1 (rcons kept (new y)) Q) g)
    = mean (verify d.+1 kept Q) g) ->
  forall d P, sum_of ys (fun y => wt y * mean (verify d (rcons kept (new y)) P) g)
    = mean (verify d kept P) g.
Proof.
move=> wt1 newQ base; elim=> [|d IH] P; first by rewrite sum_mulr wt1 mul1r.
have [->|PQ] := eqVneq P Q; first exact: base.
have nc y : candidates_of (rcons kept (new y)) P = candidates_of kept P.
  rewrite candidates_rcons; case: ifP => //; case: (new y) (newQ y) => //= e S /eqP -> /eqP QP.
  by rewrite QP eqxx in PQ.
rewrite mean_verify /=.
have avg r others : sum_of ys (fun y => wt y * reject vocab token others r
      (fun u => mean (verify d (rcons kept (new y)) u) g) (fun v => g (rcons (tokens P) v)))
    = reject vocab token others r (fun u => mean (verify d kept u) g) (fun v => g (rcons (tokens P) v)).
  by rewrite reject_mean //; apply: eq_reject => u.
case E: [seq v <- _ | is_sampled v] => [|u l].
  by rewrite -avg; apply: eq_sum => y; rewrite mean_verify nc E.
rewrite -avg -IH -!sum_mull -sum_add; apply: eq_sum => y.
by rewrite mean_verify nc E /= mulrDr !(mulrCA (wt y)).
Qed.

Section OneNode.
Variables (kept : seq node) (Q : node).
Let c := tokens Q.
Let others := [seq v <- candidates_of kept Q | ~~ is_sampled v].
Hypotheses (uV : uniq vocab) (others_uniq : uniq (map token others))
  (others_vocab : all (fun u => token u \in vocab) others).

Lemma filter_child a w : [seq v <- candidates_of (rcons kept w) Q | a v] =
  if is_child Q w && a w then rcons [seq v <- candidates_of kept Q | a v] w
  else [seq v <- candidates_of kept Q | a v].
Proof. by rewrite candidates_rcons; case: is_child => //=; rewrite filter_rcons. Qed.

Lemma value_child d w u : is_child Q w -> u \in candidates_of kept Q ->
  mean (verify d (rcons kept w) u) g = mean (verify d kept u) g.
Proof.
rewrite mem_filter => wQ /andP[/child_size su _].
by rewrite (verify_below d kept wQ) // su.
Qed.

Lemma sum_others d w r : is_child Q w ->
  sum_of others (fun u => r (token u) * mean (verify d (rcons kept w) u) g)
  = sum_of others (fun u => r (token u) * mean (verify d kept u) g).
Proof.
move=> wQ; apply: eq_sum_in => u; rewrite mem_filter => /andP[_ uc]; by rewrite value_child.
Qed.

Lemma value_new d w : is_child Q w -> candidates_of (rcons kept w) w = [::] ->
  mean (verify d (rcons kept w) w) g = g (rcons c (token w)).
Proof.
move=> wQ fresh; rewrite verify_leaf //; congr g.
by case: w wQ {fresh} => //= e S /eqP ->; rewrite /tokens /= rev_cons.
Qed.

(* The sampled token that is kept already, if there is one: drawn from the tail. *)
Hypothesis sampled_kept : forall u, u \in candidates_of kept Q -> is_sampled u ->
  [/\ law vocab (tail c), token u \in vocab & tail c (token u) != 0].

(* Case 1: a lead or fill token is admitted. *)
Lemma add_plain d w : is_child Q w -> ~~ is_sampled w -> candidates_of (rcons kept w) w = [::] ->
  token w \in vocab -> token w \notin map token others ->
  mean (verify d.+1 (rcons kept w) Q) g = mean (verify d.+1 kept Q) g.
Proof.
move=> wQ wn fresh wV wo.
have new r : whole (rcons kept w) Q (fun u => mean (verify d (rcons kept w) u) g) r
    = whole kept Q (fun u => mean (verify d kept u) g) r.
  rewrite /whole filter_child wQ wn /= -/others map_rcons -cats1 sum_cat sum_others //= addr0.
  rewrite value_new // (@sum_without_list _ _ _ (token w) (map token others)) // addrA.
  by congr (_ + _); apply: eq_sum => v; rewrite mem_rcons.
have others' : [seq v <- candidates_of (rcons kept w) Q | ~~ is_sampled v] = rcons others w.
  by rewrite filter_child wQ wn.
have uo : uniq (map token (rcons others w)) by rewrite map_rcons rcons_uniq wo.
have ov : all (fun u => token u \in vocab) (rcons others w) by rewrite all_rcons wV.
have same r : law vocab r ->
    reject vocab token (arrange c [seq v <- candidates_of (rcons kept w) Q | ~~ is_sampled v]) r
      (fun u => mean (verify d (rcons kept w) u) g) (fun v => g (rcons c v))
  = reject vocab token (arrange c others) r
      (fun u => mean (verify d kept u) g) (fun v => g (rcons c v)).
  by move=> lr; rewrite !reject_whole ?others' ?new.
have sampled' : [seq v <- candidates_of (rcons kept w) Q | is_sampled v]
    = [seq v <- candidates_of kept Q | is_sampled v].
  by rewrite filter_child wQ (negbTE wn).
rewrite !mean_verify sampled' /= -/c -/others.
case E: [seq v <- _ | is_sampled v] => [|u l]; first exact: same.
have : u \in u :: l by rewrite mem_head.
rewrite -E mem_filter => /andP[us uc]; rewrite value_child //; congr (_ + _).
have [lt uin tu] := sampled_kept uc us.
have [-> |lr] := residual_law (p_law c) lt uin tu; first by rewrite subrr !mul0r.
by rewrite same.
Qed.

(* Case 2: the sampled slot is admitted; the average is over its token. *)
Lemma add_sampled d w : is_child Q w -> is_sampled w ->
  (forall y, candidates_of (rcons kept (with_token w y)) (with_token w y) = [::]) ->
  [seq v <- candidates_of kept Q | is_sampled v] = [::] -> law vocab (tail c) ->
  (forall u, u \in others -> tail c (token u) = 0) ->
  sum_of vocab (fun y => tail c y * mean (verify d.+1 (rcons kept (with_token w y)) Q) g)
  = mean (verify d.+1 kept Q) g.
Proof.
move=> wQ ws fresh none lt lead0.
have wyQ y : is_child Q (with_token w y) by case: w wQ {ws fresh} => // -[[[a b] e] f] S.
have wys y : is_sampled (with_token w y) by rewrite with_token_child.
have wy y : token (with_token w y) = y by apply: token_with => w0; rewrite w0 in ws.
have [x xstop xr] := sum_sublist (fun u => mean (verify d kept u) g) (fun v => g (rcons c v))
  uV others_uniq others_vocab.
have whole_x r : law vocab r -> reject vocab token (arrange c others) r
    (fun u => mean (verify d kept u) g) (fun v => g (rcons c v)) = sum_of vocab (fun v => r v * x v).
  by move=> lr; rewrite reject_whole // /whole -/others xr.
have -> : mean (verify d.+1 kept Q) g = sum_of vocab (fun v => p c v * x v).
  by rewrite mean_verify none /= whole_x.
rewrite -(@sampled_step _ _ vocab (p c) (tail c) (fun v => g (rcons c v)) x) //; last first.
  move=> v vV tv; apply: xstop; apply: contra tv => /mapP[u uo ->].
  by rewrite lead0.
apply: eq_sum_in => y yV; have [-> |ty] := eqVneq (tail c y) 0; first by rewrite !mul0r.
have sampled' : [seq v <- candidates_of (rcons kept (with_token w y)) Q | is_sampled v]
    = [:: with_token w y] by rewrite filter_child wyQ wys none.
have others' : [seq v <- candidates_of (rcons kept (with_token w y)) Q | ~~ is_sampled v] = others.
  by rewrite filter_child wyQ wys.
congr (_ * _); rewrite mean_verify sampled' others' /= -/c wy value_new // wy; congr (_ + _).
have [-> |lr] := residual_law (p_law c) lt yV ty; first by rewrite subrr !mul0r.
congr (_ * _); rewrite -whole_x // -{1}others' !reject_whole ?others' //.
by rewrite /whole others' -/others sum_others.
Qed.
End OneNode.
End Verification.
