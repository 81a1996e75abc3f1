(* Lemma 5 for the kept tree, Lemma 7 (slot determinism) in its three parts, and what a
   class is: its probability is the product of the tail probabilities of its sampled
   tokens, and its draws are the whole cylinder of those tokens. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Lemma7.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
Variables (q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).
Notation node := (node R T).
Implicit Types (u v w P : node) (kept t : seq node).

Notation token := (token blank).
Notation rank := (@rank R T).
Notation unpruned := (unpruned vocab blank q s m K D proxy rank).
Notation layered := (layered vocab blank q s m K D proxy rank).
Notation grow := (grow vocab blank q s m K D proxy).
Notation next := (next vocab blank q s m K D proxy).
Notation choices := (choices vocab q s m).
Notation weight := (weight vocab q s m).
Notation law_of := (outcomes weight choices).
Notation class_weight := (class_weight vocab blank q s m).

Hypothesis A : assumptions vocab blank q s m K proxy.

(* ---- Lemma 5 ---- *)
Theorem kept_size draw n : size (prune rank n (unpruned draw)) = minn n (size (unpruned draw)).
Proof. by rewrite size_take_min size_sort. Qed.

Theorem kept_closed draw n v P : v \in prune rank n (unpruned draw) -> is_child P v ->
  (P == [::]) || (P \in prune rank n (unpruned draw)).
Proof.
move=> vk vP; have vU := kept_unpruned vk; have [Q [e [ve _ _ _ PU]]] := unpruned_child vU.
have QP : Q = P by move: vP; rewrite ve /= => /eqP.
rewrite QP in ve PU; case/orP: PU => [->//|PU]; apply/orP; right.
move: vk; rewrite !mem_kept // => vk.
exact: ltn_trans (parent_before A vU ve PU) vk.
Qed.

Theorem child_score_le draw v P : v \in unpruned draw -> is_child P v -> 0 <= score v <= score P.
Proof.
move=> vU vP; have [Q [e [ve ein _ _ PU]]] := unpruned_child vU.
have QP : Q = P by move: vP; rewrite ve /= => /eqP.
rewrite QP in ve PU ein; rewrite ve; apply: (child_bounds A _ ein).
by case/orP: PU => [/eqP -> /=|/(unpruned_score A)]; rewrite ?ler01.
Qed.

(* ---- Lemma 7, parts 1 and 2 ---- *)
(* The next node's slot is a function of the kept tree; so is its token, unless it is drawn. *)
Theorem next_slot draw n : prune rank n.+1 (unpruned draw) =
  let t := prune rank n (unpruned draw) in
  if next t is Some v
  then rcons t (if is_sampled v then with_token v (draw (behead v)) else v)
  else t.
Proof.
rewrite /= -[LHS](run_grow D A draw 1 n) /prune /=.
by case: growth.next => [v|] //=; case: ifP.
Qed.

Lemma slots_with_token v y : slots (with_token v y) = slots v.
Proof. by case: v => // -[[[a b] c] d] P. Qed.

Corollary topological_invariance draw draw' n :
  prune rank n (unpruned draw) = prune rank n (unpruned draw') ->
  map (@slots R T) (prune rank n.+1 (unpruned draw))
  = map (@slots R T) (prune rank n.+1 (unpruned draw')).
Proof.
move=> e; rewrite !next_slot -e /=; case: next => [v|] //.
by rewrite !map_rcons; case: ifP; rewrite ?slots_with_token.
Qed.

Corollary deterministic_consistency draw draw' n v :
  prune rank n (unpruned draw) = prune rank n (unpruned draw') ->
  next (prune rank n (unpruned draw)) = Some v -> ~~ is_sampled v ->
  prune rank n.+1 (unpruned draw) = prune rank n.+1 (unpruned draw').
Proof. by move=> e nx /negbTE vs; rewrite !next_slot -e /= nx vs. Qed.

(* ---- a class is the whole cylinder of its draws ---- *)
Lemma sampled_token draw n v : v \in prune rank n (unpruned draw) -> is_sampled v ->
  token v = draw (behead v).
Proof.
move=> /kept_unpruned vU vs; have [P [e [ve ein _ _ _]]] := unpruned_child vU.
by move: vs; rewrite ve /= => /eqP es; have [_ ->] := pool_sampled ein es.
Qed.

Theorem class_cylinder draw draw' n :
  prune rank n (unpruned draw') = prune rank n (unpruned draw) <->
  (forall v, v \in prune rank n (unpruned draw) -> is_sampled v -> draw' (behead v) = draw (behead v)).
Proof.
split=> [e v vk vs|].
  by rewrite -(sampled_token vk vs) -(@sampled_token draw' n) // e.
elim: n => [|n IH] same; first by rewrite /prune !take0.
have sub v : v \in prune rank n (unpruned draw) -> v \in prune rank n.+1 (unpruned draw).
  by rewrite next_slot /=; case: next => // w; rewrite mem_rcons inE => ->; rewrite orbT.
have {}IH := IH (fun v vk => same v (sub v vk)).
move: same; rewrite !next_slot IH /=; case: next => // v same; congr rcons.
case: ifP => vs //; congr with_token.
have := same (with_token v (draw (behead v))).
by rewrite vs mem_rcons mem_head !with_token_child vs => /(_ isT isT).
Qed.

(* ---- the probability of a class ---- *)
Lemma uniq_flatten_map (X Y : eqType) (ys : seq X) (F : X -> seq Y) : uniq ys ->
  (forall y, uniq (F y)) -> (forall y y' x, x \in F y -> x \in F y' -> y = y') ->
  uniq (flatten [seq F y | y <- ys]).
Proof.
move=> + uF dis; elim: ys => //= y ys IH /andP[yn uys]; rewrite cat_uniq uF IH // andbT /=.
apply/hasPn => x /flatten_mapP[y' yys xy']; apply/negP => xy.
by move: yn; rewrite (dis y y' x xy xy') yys.
Qed.

Lemma choices_uniq P : uniq (choices P).
Proof. by rewrite filter_uniq // rest_uniq // (uniq_vocab A). Qed.

Lemma with_token_inj v y y' : is_sampled v -> with_token v y = with_token v y' -> y = y'.
Proof. by case: v => // -[[[a b] c] d] P _ []. Qed.

Lemma grow_outcomes_uniq n kept : uniq (map snd (law_of (grow n kept))).
Proof.
elim: n kept => [|n IH] kept //=; case E: growth.next => [v|] //=; case: ifP => vs //=.
rewrite map_flatten -map_comp; apply: uniq_flatten_map; first exact: choices_uniq.
  by move=> y /=; rewrite -map_comp (eq_map (f2 := snd)).
have prefix y x : x \in ((map snd \o (fun y => scale (weight (behead v) y)
    (law_of (grow n (rcons kept (with_token v y)))))) y) ->
    nth [::] x (size kept) = with_token v y.
  rewrite /= -map_comp => /mapP[wt wto ->] /=.
  have [ext [-> _]] := grow_prefix wto.
  by rewrite nth_cat size_rcons ltnSn nth_rcons ltnn eqxx.
move=> y y' x /prefix e1 /prefix e2; apply: (with_token_inj vs); by rewrite -e1.
Qed.

Lemma mean_absent (X : eqType) (d : dist R X) x : x \notin map snd d -> mean d (fun y => (y == x)%:R) = 0.
Proof.
move=> xd; rewrite /mean sum_ofE big1_seq // => wt /andP[_ wd].
by case: eqP => [e|]; [move: xd; rewrite -e map_f|rewrite mulr0].
Qed.

Lemma mean_point (X : eqType) (d : dist R X) wt : uniq (map snd d) -> wt \in d ->
  mean d (fun x => (x == wt.2)%:R) = wt.1.
Proof.
elim: d => // a d IH /= /andP[ad ud]; rewrite inE => /predU1P[->|wd].
  by rewrite eqxx mulr1 mean_absent // addr0.
have -> : (a.2 == wt.2) = false by apply/negP => /eqP e; move: ad; rewrite e map_f.
by rewrite mulr0 add0r; apply: IH.
Qed.

Theorem class_probability n wt : wt \in law_of (grow n [::]) ->
  mean (law_of layered) (fun U => (prune rank n U == wt.2)%:R) = class_weight wt.2.
Proof.
move=> wd; rewrite -(growth_law D A n (fun t => (t == wt.2)%:R)) mean_point ?grow_outcomes_uniq //.
by rewrite -(class_weight_grow wd) /classes.class_weight big_nil mulr1.
Qed.

Theorem other_classes n t : t \notin map snd (law_of (grow n [::])) ->
  mean (law_of layered) (fun U => (prune rank n U == t)%:R) = 0.
Proof.
by move=> td; rewrite -(growth_law D A n (fun k => (k == t)%:R)) mean_absent.
Qed.

(* ---- Lemma 7, part 3 ---- *)
Lemma mean_grow_succ n kept f : mean (law_of (grow n.+1 kept)) f
  = mean (law_of (grow n kept)) (fun t => mean (law_of (grow 1 t)) f).
Proof.
elim: n kept => [|n IH] kept; first by rewrite [RHS]/mean /= mul1r addr0.
have growS k : grow k.+1 kept = if next kept is Some v then if is_sampled v
  then Draw (behead v : [eqType of node]) (fun y => grow k (rcons kept (with_token v y)))
  else grow k (rcons kept v) else Ret kept by [].
rewrite (growS n.+1) (growS n); case E: next => [v|]; last first.
  have one : grow 1 kept = Ret kept by rewrite growS E.
  have ret h : mean (law_of (Ret kept)) h = h kept by rewrite /mean /= mul1r addr0.
  by rewrite !ret one ret.
case: ifP => vs; last exact: IH.
rewrite !(mean_outcomes_draw weight choices); apply: eq_sum => y; by rewrite IH.
Qed.

Theorem stochastic_fidelity n t v y : size t = n -> next t = Some v -> is_sampled v ->
  y \in choices (behead v) ->
  mean (law_of layered) (fun U => (prune rank n.+1 U == rcons t (with_token v y))%:R)
  = mean (law_of layered) (fun U => (prune rank n U == t)%:R) * tail vocab q s m (tokens (behead v)) y.
Proof.
move=> st nx vs yc; set new := rcons t _.
rewrite -(growth_law D A n.+1 (fun k => (k == new)%:R)) -(growth_law D A n (fun k => (k == t)%:R)).
have key wt : wt \in law_of (grow n [::]) ->
    mean (law_of (grow 1 wt.2)) (fun k => (k == new)%:R)
    = (wt.2 == t)%:R * tail vocab q s m (tokens (behead v)) y.
  move=> wd; have [ext [wte se]] := grow_prefix wd; rewrite cat0s in wte.
  have ret k : mean (law_of (Ret k)) (fun k => (k == new)%:R) = (k == new)%:R.
    by rewrite /mean /= mul1r addr0.
  have [->|ne] := eqVneq wt.2 t.
    rewrite mul1r /= nx vs (mean_outcomes_draw weight choices).
    rewrite sum_ofE (bigD1_seq y) ?choices_uniq //= big1; last first.
      move=> y' yy'; rewrite mul1r addr0 eqseq_rcons eqxx /=.
      case: eqP => [/(with_token_inj vs) e|]; last by rewrite mulr0.
      by rewrite e eqxx in yy'.
    by rewrite -/new eqxx mul1r !addr0 mulr1.
  have small : (wt.2 == new) = false.
    by apply/negP => /eqP e; move: se; rewrite -wte e size_rcons st ltnn.
  have ner w' : (rcons wt.2 w' == new) = false by rewrite eqseq_rcons (negbTE ne).
  rewrite mul0r /=; case: growth.next => [w|]; last by rewrite ret small.
  case: ifP => _; last by rewrite ret ner.
  rewrite (mean_outcomes_draw weight choices) sum_ofE big1 // => y' _.
  by rewrite ret ner mulr0.
rewrite mean_grow_succ /mean -sum_mulr; apply: eq_sum_in => wt wd; rewrite -mulrA; congr (_ * _).
exact: key.
Qed.
End Lemma7.
