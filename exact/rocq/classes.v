(* The two constructions as programs: one law. The probability of a class (a kept tree
   with its tokens) is the product of the tail probabilities of its sampled tokens, and a
   class is the whole cylinder of those draws. Lemma 7, all three parts. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Classes.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
Variables (q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).
Notation node := (node R T).
Implicit Types (u v w P : node) (kept t : seq node).

Notation token := (token blank).
Notation undrawn := (undrawn blank).
Notation children := (children vocab blank q s m K proxy).
Notation expandable := (expandable vocab q s m K).
Notation rank := (@rank R T).
Notation unpruned := (unpruned vocab blank q s m K D proxy rank).
Notation layered := (layered vocab blank q s m K D proxy rank).
Notation grow := (grow vocab blank q s m K D proxy).
Notation next := (next vocab blank q s m K D proxy).
Notation drawn := (drawn blank).

(* The law of the draw at a parent: its tail law. *)
Definition weight (P : [eqType of node]) : T -> R := tail vocab q s m (tokens P).
Definition choices (P : [eqType of node]) : seq T := support vocab q s m (tokens P).
Notation law_of := (outcomes weight choices).
Notation once := (once (expandable : pred [eqType of node])).

Hypothesis A : assumptions vocab blank q s m K proxy.

Lemma weight1 P : expandable P -> sum_of (choices P) (weight P) = 1.
Proof. by apply: tail_support1; [apply: uniq_vocab A|apply/law_ge0/(s_law A)]. Qed.

(* ---- growth reads no draw twice ---- *)
Lemma drawn_rcons kept v P : drawn (rcons kept v) P =
  if drawn kept P is Some y then Some y
  else if is_child P v && is_sampled v then Some (token v) else None.
Proof.
rewrite /growth.drawn filter_rcons; case: ifP => _; last by case: [seq _ <- _ | _].
by case: [seq _ <- _ | _].
Qed.

Lemma next_candidate kept v : next kept = Some v ->
  v \in candidates vocab blank q s m K D proxy kept.
Proof.
rewrite /growth.next; case E: (sort _ _) => [//|w l] [<-].
by rewrite -(mem_sort rank) E mem_head.
Qed.

Lemma next_sampled kept v : next kept = Some v -> is_sampled v ->
  drawn kept (behead v) = None /\ expandable (behead v).
Proof.
move/next_candidate/flatten_mapP => [P _]; rewrite mem_filter => /andP[_].
rewrite /visible; case E: growth.drawn => [y|]; first by rewrite mem_filter => /andP[/negbTE ->].
by case/children_inv => e -> /= ein /eqP es; have [] := pool_sampled ein es.
Qed.

Lemma next_child kept v : next kept = Some v -> v = head (0%N, 0%N, blank, 0) v :: behead v.
Proof.
move/next_candidate/flatten_mapP => [P _]; rewrite mem_filter => /andP[_].
rewrite /visible; case: growth.drawn => [y|]; rewrite ?mem_filter.
  by case/andP => _ /children_inv[e ->].
by case/children_inv => e ->.
Qed.

Lemma grow_avoids n kept P : drawn kept P != None -> avoids (P : [eqType of node]) (grow n kept).
Proof.
elim: n kept => [|n IH] kept dP //=; case E: next => [v|] //=.
have mono u : drawn (rcons kept u) P != None by rewrite drawn_rcons; case: drawn dP.
case: ifP => [vs|_] /=; last exact: IH.
split=> [|y]; last exact: IH.
by apply/eqP => vP; have [] := next_sampled E vs; rewrite vP => dn; rewrite dn in dP.
Qed.

Lemma with_token_child v y : (is_sampled (with_token v y) = is_sampled v) *
  (behead (with_token v y) = behead v).
Proof. by case: v => // -[[[a b] c] d] P. Qed.

Lemma token_with v y : v <> [::] -> token (with_token v y) = y.
Proof. by case: v => // -[[[a b] c] d] P. Qed.

Lemma is_childE v e P : v = e :: P -> is_child P v.
Proof. by move=> -> /=. Qed.

Lemma drawn_new kept v y : next kept = Some v -> is_sampled v ->
  drawn (rcons kept (with_token v y)) (behead v) = Some y.
Proof.
move=> nx vs; have [dn _] := next_sampled nx vs; rewrite drawn_rcons dn.
have -> : is_child (behead v) (with_token v y).
  by rewrite (next_child nx); case: (head _ _) => -[[a b] c] d /=.
by rewrite with_token_child vs /= token_with // => v0; rewrite v0 in vs.
Qed.

Lemma grow_once n kept : once (grow n kept).
Proof.
elim: n kept => [|n IH] kept //=; case E: next => [v|] //=; case: ifP => [vs|_] //=.
by have [_ ex] := next_sampled E vs; split=> // y; apply: grow_avoids; rewrite (drawn_new _ E vs).
Qed.

(* ---- so does the layered construction ---- *)
Notation draw_pools := (draw_pools vocab blank q s m K proxy).
Notation layers := (layers vocab blank q s m K proxy rank).
Notation sized d := (all (fun v : node => size v == d)).

Lemma children_sized y P d : size P = d -> sized d.+1 (children y P).
Proof. by move=> sP; apply/allP => v /children_inv[e -> _] /=; rewrite sP. Qed.

Lemma children_uniq y P : uniq (children y P).
Proof.
rewrite map_inj_uniq; last by move=> a b [].
exact: (map_uniq (pool_slots_uniq vocab blank q s m K proxy (tokens P) (score P) y)).
Qed.

Lemma draw_pools_avoids B n Ps (k : seq node -> prog T [eqType of node] B) d :
  sized d Ps -> n \notin Ps -> (forall r, sized d.+1 r -> avoids (n : [eqType of node]) (k r)) ->
  avoids (n : [eqType of node]) (draw_pools Ps k).
Proof.
elim: Ps k => [|P Ps IH] k /=; first by move=> _ _; apply.
case/andP => /eqP sP sPs; rewrite inE negb_or => /andP[nP nPs] kr.
have rec y : avoids (n : [eqType of node]) (draw_pools Ps (fun r => k (children y P ++ r))).
  by apply: IH => // r sr; apply: kr; rewrite all_cat children_sized.
by case: ifP => _ //=; split=> //; rewrite eq_sym.
Qed.

Lemma layers_avoids n j last acc d : sized d last -> (size n < d)%N ->
  avoids (n : [eqType of node]) (layers j last acc).
Proof.
elim: j last acc d => [|j IH] last acc d sl nd //=.
have sb : sized d (best_of rank K last).
  by apply/allP => v /mem_take; rewrite mem_sort => /(allP sl).
apply: (draw_pools_avoids sb) => [|r sr]; last by apply: IH sr _; apply: ltnW.
by apply/negP => /(allP sb) /eqP sn; rewrite sn ltnn in nd.
Qed.

Lemma draw_pools_once B Ps (k : seq node -> prog T [eqType of node] B) d :
  sized d Ps -> uniq Ps ->
  (forall r, sized d.+1 r -> uniq r -> once (k r)) ->
  (forall n r, size n = d -> sized d.+1 r -> avoids (n : [eqType of node]) (k r)) ->
  once (draw_pools Ps k).
Proof.
move=> sPs uPs kr kav.
have {}kr r : sized d.+1 r -> uniq r -> {subset map behead r <= Ps} -> once (k r) by move=> *; apply: kr.
elim: Ps k sPs uPs kr kav => [|P Ps IH] k /=; first by move=> _ _ kr _; apply: kr.
case/andP => /eqP sP sPs /andP[PPs uPs] kr kav.
have rec y : once (draw_pools Ps (fun r => k (children y P ++ r))).
  apply: IH => // [r sr ur rPs|n r sn sr]; last by apply: kav; rewrite // all_cat children_sized.
  apply: kr; first by rewrite all_cat children_sized.
    rewrite cat_uniq ur children_uniq andbT /=; apply/hasPn => v vr.
    apply/negP => /children_inv[e ve _]; move: PPs; rewrite (rPs P) //.
    by apply/mapP; exists v => //; rewrite ve.
  move=> Q; rewrite map_cat mem_cat inE => /orP[/mapP[v /children_inv[e -> _] ->]|/rPs ->].
    by rewrite eqxx.
  by rewrite orbT.
case: ifP => [ex|_] //=; split=> // y; apply: (draw_pools_avoids sPs) => // r sr.
by apply: kav; rewrite // all_cat children_sized.
Qed.

Lemma layers_once j last acc d : sized d last -> uniq last -> once (layers j last acc).
Proof.
elim: j last acc d => [|j IH] last acc d sl ul //=.
apply: (@draw_pools_once _ _ _ d).
- by apply/allP => v /mem_take; rewrite mem_sort => /(allP sl).
- by rewrite take_uniq // sort_uniq.
- by move=> r sr ur; apply: IH sr ur.
- by move=> n r sn sr; apply: layers_avoids sr _; rewrite sn.
Qed.

Lemma layered_once : once layered.
Proof. by rewrite /tree.layered; apply: (@layers_once D [:: [::]] [::] 0%N). Qed.

Lemma run_draw_pools B draw Ps (k : seq node -> prog T [eqType of node] B) :
  run draw (draw_pools Ps k)
  = run draw (k (flatten [seq grown_pool vocab blank q s m K proxy draw P | P <- Ps])).
Proof.
elim: Ps k => [|P Ps IH] k //=; case: ifP => ex /=; rewrite IH //.
by rewrite (children_nil_draw blank proxy None (Some (draw P))) ?ex.
Qed.

Lemma run_layers draw j i acc :
  run draw (layers j (level vocab blank q s m K proxy rank draw i) acc)
  = acc ++ flatten [seq level vocab blank q s m K proxy rank draw d | d <- iota i.+1 j].
Proof.
elim: j i acc => [|j IH] i acc /=; first by rewrite cats0.
by rewrite run_draw_pools (IH i.+1) catA.
Qed.

(* On given draws the layered program builds the unpruned tree. *)
Lemma run_layered draw : run draw layered = unpruned draw.
Proof. exact: (run_layers draw D 0). Qed.

(* The unpruned tree as a random assignment: all draws at once, or one by one. *)
Theorem layered_assignment f ns (w : node -> T) :
  {subset reads choices layered <= ns} -> uniq ns -> all expandable ns ->
  expect weight choices ns (fun draw => f (unpruned draw)) w = mean (law_of layered) f.
Proof.
move=> sub uns oks; rewrite -(expect_run weight1 f w layered_once sub uns oks).
by elim: ns w {sub uns oks} => [|n ns IH] w /=; rewrite ?run_layered //; apply: eq_sum => y; rewrite IH.
Qed.

(* Growth and expand-and-prune have one law. *)
Theorem growth_law n f :
  mean (law_of (grow n [::])) f = mean (law_of layered) (fun U => f (prune rank n U)).
Proof.
apply: (same_runs_same_law (f := f) (g := fun U => f (prune rank n U)) weight1 blank
  (grow_once n [::]) layered_once) => draw.
by rewrite run_layered growth_is_pruning.
Qed.

(* ---- the product form ---- *)
Definition class_weight t : R :=
  \prod_(v <- t | is_sampled v) tail vocab q s m (tokens (behead v)) (token v).

Lemma class_weight_rcons t v : class_weight (rcons t v) =
  class_weight t * (if is_sampled v then tail vocab q s m (tokens (behead v)) (token v) else 1).
Proof. by rewrite /class_weight -cats1 big_cat big_mkcond /= big_cons big_nil /= mulr1. Qed.

Lemma class_weight_grow n kept wt : wt \in law_of (grow n kept) ->
  wt.1 * class_weight kept = class_weight wt.2.
Proof.
elim: n kept wt => [|n IH] kept wt /=; first by rewrite inE => /eqP -> /=; rewrite mul1r.
case E: growth.next => [v|] /=; last by rewrite inE => /eqP -> /=; rewrite mul1r.
case: ifP => vs /=; last first.
  by move/IH => <-; rewrite class_weight_rcons vs mulr1.
case/flatten_mapP => y _ /mapP[wt' /IH e ->] /=; rewrite -e.
rewrite class_weight_rcons !with_token_child vs token_with; last by move=> v0; rewrite v0 in vs.
by rewrite -mulrA mulrC -mulrA.
Qed.

Lemma grow_prefix n kept wt : wt \in law_of (grow n kept) ->
  exists ext, wt.2 = kept ++ ext /\ (size ext <= n)%N.
Proof.
elim: n kept wt => [|n IH] kept wt /=; first by rewrite inE => /eqP ->; exists [::]; rewrite cats0.
case E: growth.next => [v|] /=; last by rewrite inE => /eqP ->; exists [::]; rewrite cats0.
case: ifP => vs /=; last by case/IH => ext [-> se]; exists (v :: ext); rewrite -cat_rcons.
case/flatten_mapP => y _ /mapP[wt' /IH[ext [e se]] ->] /=.
by exists (with_token v y :: ext); rewrite e -cat_rcons.
Qed.
End Classes.
