(* Growth: admit the best slot in sight, again and again; a sampled token is drawn when
   its slot is admitted, not before. On any draws this gives the same nodes in the same
   order as expanding the K best nodes of every level and keeping the best R of all. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Growth.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
Variables (q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).
Notation node := (node R T).
Implicit Types (u v w P : node) (kept : seq node).

Notation token := (token blank).
Notation undrawn := (undrawn blank).
Notation children := (children vocab blank q s m K proxy).
Notation expandable := (expandable vocab q s m K).
Notation rank := (@rank R T).

(* The token in P's sampled slot, if that slot is kept already. *)
Definition drawn kept P : option T :=
  if [seq v <- kept | is_child P v && is_sampled v] is v :: _ then Some (token v) else None.

(* P is expanded when fewer than K nodes of its depth were admitted before it. *)
Definition expanded kept P :=
  (size P < D)%N && (index P [seq v <- [::] :: kept | size v == size P] < K)%N.

Definition visible kept P : seq node :=
  if drawn kept P is Some y then [seq v <- children (Some y) P | ~~ is_sampled v]
  else children None P.

Definition candidates kept : seq node :=
  flatten [seq [seq v <- visible kept P | v \notin kept] | P <- [::] :: kept & expanded kept P].

(* The next slot is a function of the kept nodes alone (Lemma 7.1). *)
Definition next kept : option node := ohead (sort rank (candidates kept)).

Fixpoint grow n kept : prog T [eqType of node] (seq node) :=
  if n is n'.+1 then
    if next kept is Some v then
      if is_sampled v
      then Draw (behead v : [eqType of node]) (fun y => grow n' (rcons kept (with_token v y)))
      else grow n' (rcons kept v)
    else Ret kept
  else Ret kept.

(* What the theorems assume of the models. *)
Record assumptions : Prop := Assumptions {
  uniq_vocab : uniq vocab;
  q_law : forall c, law vocab (q c);
  s_law : forall c, law vocab (s c);
  proxy_blind : forall c y y', proxy c y = proxy c y';
  proxy_low : forall c, has_sampled vocab q s m K c ->
    q c (nth blank (order vocab q c) m) <= proxy c blank;
  proxy_high : forall c, has_sampled vocab q s m K c -> proxy c blank <= 1 }.
Hypothesis A : assumptions.

Section Pointwise.
Variable draw : node -> T.
Notation level := (level vocab blank q s m K proxy rank draw).
Notation unpruned := (unpruned vocab blank q s m K D proxy rank draw).

Lemma level_size d v : v \in level d -> size v = d.
Proof.
elim: d v => [|d IH] v /=; first by rewrite inE => /eqP ->.
case/flatten_mapP => P PK /children_inv[e -> _] /=; rewrite IH //.
by move: PK => /mem_take; rewrite mem_sort.
Qed.

Lemma level_child d v : v \in level d.+1 -> exists2 P, P \in best_of rank K (level d) &
  v \in children (Some (draw P)) P.
Proof. by case/flatten_mapP => P; exists P. Qed.

Lemma child_level d P v : P \in best_of rank K (level d) ->
  v \in children (Some (draw P)) P -> v \in level d.+1.
Proof. by move=> PK vP; apply/flatten_mapP; exists P. Qed.

Lemma best_level d P : P \in best_of rank K (level d) -> P \in level d.
Proof. by move/mem_take; rewrite mem_sort. Qed.

Lemma child_bounds y P e : 0 <= score P ->
  e \in pool vocab blank q s m K proxy (tokens P) (score P) y -> 0 <= score_of e <= score P.
Proof.
move=> S0 ein; apply: (child_score (q_law A _) (proxy_blind A _) _ _ S0 ein).
- exact: proxy_low.
- exact: proxy_high.
Qed.

Lemma level_score d v : v \in level d -> 0 <= score v.
Proof.
elim: d v => [|d IH] v; first by rewrite inE => /eqP -> /=; apply: ler01.
case/level_child => P /best_level/IH S0 /children_inv[e -> ein].
by have /andP[] := child_bounds S0 ein.
Qed.

Lemma level_slots d u v : u \in level d -> v \in level d -> slots u = slots v -> u = v.
Proof.
elim: d u v => [|d IH] u v; first by rewrite !inE => /eqP -> /eqP ->.
case/level_child => P Pl /children_inv[e -> ein]; case/level_child => Q Ql /children_inv[f -> fin].
rewrite /slots /= !rev_cons => /rcons_inj[PQ ef].
have PQ' : P = Q by apply: IH PQ; apply: best_level.
by rewrite -PQ' in fin *; rewrite (pool_slot_inj ein fin ef).
Qed.

Lemma level_uniq d : uniq (level d).
Proof.
elim: d => [|d IH] //=; rewrite /grown_pool.
have -> : flatten [seq children (Some (draw P)) P | P <- best_of rank K (level d)]
  = [seq e :: P | P <- best_of rank K (level d),
     e <- pool vocab blank q s m K proxy (tokens P) (score P) (Some (draw P))] by [].
apply: allpairs_uniq_dep; first by rewrite take_uniq // sort_uniq.
  move=> P _; apply: (map_uniq (f := @slot_of R T)); exact: pool_slots_uniq.
by move=> [P e] [Q f] _ _ /= [-> ->].
Qed.

Lemma mem_unpruned v : (v \in unpruned) = (0 < size v <= D)%N && (v \in level (size v)).
Proof.
apply/flatten_mapP/idP => [[d]|/andP[/andP[lo hi] vl]].
  by rewrite mem_iota add1n ltnS => /andP[d1 d2] vd; rewrite (level_size vd) d1 d2.
by exists (size v) => //; rewrite mem_iota add1n ltnS lo.
Qed.

Lemma filter_levels d a n : flatten [seq [seq v <- level i | size v == d] | i <- iota a n]
  = if (a <= d < a + n)%N then level d else [::].
Proof.
elim: n a => [|n IH] a /=; first by rewrite addn0; case: ltnP => // /leq_trans h; case: ltnP => // /h; rewrite ltnn.
have one i : [seq v <- level i | size v == d] = if i == d then level d else [::].
  case: eqP => [->|ne].
    by apply/all_filterP/allP => v /level_size ->.
  by apply/eqP; rewrite -(negbK (_ == _)) -has_filter; apply/hasPn => v /level_size ->; apply/eqP.
rewrite IH one; case: (ltngtP a d) => [lt|gt|->] //=.
  by rewrite addSnnS.
by rewrite addnS ltnS leq_addr cats0.
Qed.

Lemma filter_unpruned d : (0 < d <= D)%N -> [seq v <- unpruned | size v == d] = level d.
Proof. by move=> h; rewrite filter_flatten -map_comp filter_levels add1n ltnS h. Qed.

Lemma unpruned_uniq : uniq unpruned.
Proof.
have -> : unpruned = [seq v | d <- iota 1 D, v <- level d].
  by rewrite /tree.unpruned; congr flatten; apply: eq_map => d; rewrite map_id.
apply: allpairs_uniq_dep; rewrite ?iota_uniq //; first by move=> d _; apply: level_uniq.
move=> [d v] [d' v'] /allpairsPdep[x [y [_ yl]]] [-> ->] /allpairsPdep[x' [y' [_ yl']]] [-> ->] /= e.
by move: yl yl'; rewrite e => /level_size <- /level_size <-.
Qed.

Lemma unpruned_slots u v : u \in unpruned -> v \in unpruned -> slots u = slots v -> u = v.
Proof.
rewrite !mem_unpruned => /andP[_ ul] /andP[_ vl] e.
have sz : size u = size v by rewrite -slots_size e slots_size.
by rewrite sz in ul; apply: level_slots ul vl e.
Qed.

(* Everything by rank. *)
Definition ranked := sort rank unpruned.

Lemma mem_ranked v : (v \in ranked) = (v \in unpruned).
Proof. exact: mem_sort. Qed.

Lemma ranked_uniq : uniq ranked.
Proof. by rewrite sort_uniq unpruned_uniq. Qed.

Lemma ranked_sorted : sorted rank ranked.
Proof. exact/sort_sorted/rank_total. Qed.

Lemma rank_refl v : rank v v.
Proof. by have := rank_total v v; rewrite orbb. Qed.

Lemma ranked_before i j : (i <= j)%N -> (j < size ranked)%N -> rank (nth [::] ranked i) (nth [::] ranked j).
Proof.
move=> ij jlt; apply: (sorted_leq_nth (@rank_trans R T) rank_refl [::] ranked_sorted) => //.
by rewrite inE (leq_ltn_trans ij).
Qed.

Lemma index_before u v : u \in unpruned -> v \in unpruned -> ~~ rank v u ->
  (index u ranked < index v ranked)%N.
Proof.
rewrite -!mem_ranked => ur vr; apply: contraR; rewrite -leqNgt => le.
have := ranked_before le; rewrite index_mem => /(_ ur).
by rewrite !nth_index.
Qed.

Lemma mem_kept k u : u \in unpruned -> (u \in take k ranked) = (index u ranked < k)%N.
Proof. by move=> uU; rewrite in_take // mem_ranked. Qed.

Lemma kept_unpruned k u : u \in take k ranked -> u \in unpruned.
Proof. by move/mem_take; rewrite mem_ranked. Qed.

(* Parents come first: the kept nodes are closed under ancestors. *)
Lemma unpruned_child v : v \in unpruned -> exists P e, [/\ v = e :: P,
  e \in pool vocab blank q s m K proxy (tokens P) (score P) (Some (draw P)),
  P \in best_of rank K (level (size P)), (size P < D)%N & (P == [::]) || (P \in unpruned)].
Proof.
rewrite mem_unpruned => /andP[/andP[v0 vD] vl]; case: v v0 vD vl => // f Q _ QD.
case/level_child => P PK /children_inv[e [fe QP] ein]; subst f Q.
exists P, e; split=> //; have Pl := best_level PK.
have PD : (size P <= D)%N by apply: ltnW.
by rewrite mem_unpruned PD (Pl : P \in level (size P)) !andbT; case: (P).
Qed.

Lemma child_unpruned P v : (P == [::]) || (P \in unpruned) -> (size P < D)%N ->
  P \in best_of rank K (level (size P)) -> v \in children (Some (draw P)) P -> v \in unpruned.
Proof.
move=> _ PD PK vP; have vl := child_level PK vP.
by rewrite mem_unpruned (level_size vl) vl PD.
Qed.

Lemma unpruned_score v : v \in unpruned -> 0 <= score v.
Proof. by rewrite mem_unpruned => /andP[_ /level_score]. Qed.

Lemma parent_before v P e : v \in unpruned -> v = e :: P -> P \in unpruned ->
  (index P ranked < index v ranked)%N.
Proof.
move=> vU ve PU; apply: index_before => //.
have [P' [e' [ve' ein _ _ _]]] := unpruned_child vU.
move: ve ve' => -> [-> PP']; rewrite -{}PP' in ein *.
have /andP[_ le] := child_bounds (unpruned_score PU) ein.
by have [] := rank_parent le.
Qed.

(* The K-per-level rule read off the kept nodes. *)
Lemma expandedE k P : (P == [::]) || (P \in take k ranked) ->
  expanded (take k ranked) P = (size P < D)%N && (P \in best_of rank K (level (size P))).
Proof.
rewrite /expanded => Pin; case: ltnP => //= PD.
have [P0|Pn] := eqVneq P [::].
  by rewrite P0 /best_of /=; case: (K).
rewrite (negbTE Pn) /= in Pin; have PU := kept_unpruned Pin.
have P0 : (0 < size P)%N by case: (P) Pn.
have Pl : P \in level (size P) by move: PU; rewrite mem_unpruned => /andP[].
rewrite /= ifN; last by rewrite eq_sym -lt0n.
have byrank : sort rank (level (size P)) = [seq v <- ranked | size v == size P].
  rewrite /ranked filter_sort; [|exact: rank_total|exact: rank_trans].
  by rewrite filter_unpruned // P0 ltnW.
rewrite /best_of byrank in_take; last by rewrite mem_filter eqxx mem_ranked.
rewrite -{2}(cat_take_drop k ranked) filter_cat index_cat.
by rewrite mem_filter eqxx Pin.
Qed.

Lemma drawn_some k P y : drawn (take k ranked) P = Some y ->
  y = draw P /\ exists2 v, v \in take k ranked & is_child P v && is_sampled v.
Proof.
rewrite /drawn; case E: [seq _ <- _ | _] => [//|v l] [<-].
have : v \in v :: l by rewrite mem_head.
rewrite -E mem_filter => /andP[cs vk]; split; last by exists v.
have [P' [e [ve ein _ _ _]]] := unpruned_child (kept_unpruned vk).
move: cs; rewrite ve /= => /andP[/eqP PP' /eqP ek]; rewrite -PP'.
by have [_ ->] := pool_sampled ein ek.
Qed.

Lemma drawn_none kept P v : drawn kept P = None -> v \in kept -> is_child P v -> is_sampled v -> False.
Proof.
rewrite /drawn; case E: [seq _ <- _ | _] => // _ vk cv sv.
have : v \in [seq v <- kept | is_child P v && is_sampled v] by rewrite mem_filter cv sv.
by rewrite E.
Qed.

Lemma candidates_sound k v : v \in candidates (take k ranked) ->
  exists u, [/\ u \in unpruned, u \notin take k ranked & v = undrawn u].
Proof.
case/flatten_mapP => P Pf; have /andP[exP Pin] : expanded (take k ranked) P
  && (P \in [::] :: take k ranked) by rewrite -mem_filter.
have Pin' : (P == [::]) || (P \in take k ranked) by rewrite -in_cons.
have PU : (P == [::]) || (P \in unpruned).
  by case/orP: Pin' => [->//|/kept_unpruned ->]; rewrite orbT.
move: exP; rewrite expandedE // => /andP[PD PK].
rewrite mem_filter => /andP[vk]; rewrite /visible.
case E: drawn => [y|].
  have [-> _] := drawn_some E; rewrite mem_filter => /andP[ns vP].
  exists v; rewrite vk /tree.undrawn (negbTE ns); split=> //.
  exact: child_unpruned vP.
case/children_inv => e ve ein; have [es|en] := boolP (kind_of e == 1%N).
  have [hs ee] := pool_sampled ein (eqP es).
  pose u : node := (m, 1%N, draw P, score P * proxy (tokens P) (draw P)) :: P.
  exists u; split.
  - by apply: (child_unpruned PU) => //; rewrite /u mem_children; apply: (sampled_in_pool _ _ _ (Some _)).
  - by apply/negP => uk; apply: (drawn_none E uk); rewrite /= eqxx.
  - by rewrite ve ee /undrawn /u /= (proxy_blind A _ (draw P) blank).
exists v; rewrite vk ve /undrawn /= (negbTE en); split=> //.
by apply: (child_unpruned PU) => //; rewrite mem_children; apply: pool_none.
Qed.

Lemma candidates_complete k : (k < size ranked)%N ->
  undrawn (nth [::] ranked k) \in candidates (take k ranked).
Proof.
move=> klt; set u := nth _ _ _.
have ur : u \in ranked by rewrite mem_nth.
have uU : u \in unpruned by rewrite -mem_ranked.
have uk : index u ranked = k by rewrite index_uniq // ranked_uniq.
have unk : u \notin take k ranked by rewrite mem_kept // uk ltnn.
have [P [e [ue ein PK PD PU]]] := unpruned_child uU.
have Pin : (P == [::]) || (P \in take k ranked).
  case/orP: PU => [->//|PU]; rewrite mem_kept // -uk.
  by rewrite (parent_before uU ue) // orbT.
have S0 : 0 <= score P.
  by case/orP: PU => [/eqP -> /=|/unpruned_score //]; apply: ler01.
apply/flatten_mapP; exists P.
  by rewrite mem_filter in_cons Pin andbT expandedE // PD PK.
rewrite mem_filter; apply/andP; split.
  have [us|uns] := boolP (is_sampled u); last by rewrite /tree.undrawn (negbTE uns).
  apply/negP => bad; have bU := kept_unpruned bad.
  have eqs : slots (undrawn u) = slots u by have [] := undrawn_shape blank u.
  by move: bad; rewrite (unpruned_slots bU uU eqs) (negbTE unk).
rewrite /visible; case E: drawn => [y|].
  have [yd [w wk /andP[wc ws]]] := drawn_some E; rewrite yd.
  have uns : ~~ is_sampled u.
    apply/negP => us; have wU := kept_unpruned wk.
    have [Q [f [wf fin _ _ _]]] := unpruned_child wU.
    move: wc ws us wk; rewrite wf ue /= => /eqP QP fs es; rewrite QP in fin *.
    have [_ ->] := pool_sampled fin (eqP fs); have [_ ee] := pool_sampled ein (eqP es).
    by rewrite -[X in X :: P]ee -ue (negbTE unk).
  by rewrite /tree.undrawn (negbTE uns) mem_filter uns ue mem_children.
rewrite ue /tree.undrawn; case: ifP => /= es.
  have [hs ee] := pool_sampled ein (eqP es); rewrite ee /= mem_children.
  rewrite (proxy_blind A _ (draw P) blank); exact: (sampled_in_pool _ _ _ None).
have [hs|hs] := boolP (expandable P); last first.
  by rewrite (children_nil_draw blank proxy None (Some (draw P)) hs) mem_children.
rewrite mem_children; apply: (pool_some hs ein).
have := pool_kind ein; case ke: (kind_of e) es => [|[|[|//]]] // _ _.
pose w : node := (m, 1%N, draw P, score P * proxy (tokens P) (draw P)) :: P.
have wU : w \in unpruned.
  by apply: (child_unpruned PU) => //; rewrite mem_children; apply: (sampled_in_pool _ _ _ (Some _)).
have [_ lt _ _] := pool_fill hs ein ke.
have le : score_of e <= score P * proxy (tokens P) (draw P).
  by apply: (local_ranking (proxy_blind A _) _ _ S0 hs ein ke); apply: proxy_low.
have [_ nr] := rank_sibling P (e := (m, 1%N, draw P, score P * proxy (tokens P) (draw P))) le lt.
case: (drawn_none E (v := w)); rewrite /= ?eqxx // mem_kept // -uk.
by apply: index_before => //; rewrite ue.
Qed.

Lemma nextE k : next (take k ranked) =
  if (k < size ranked)%N then Some (undrawn (nth [::] ranked k)) else None.
Proof.
rewrite /next; case: ltnP => klt; last first.
  case E: (sort _ _) => [//|v l]; have : v \in v :: l by rewrite mem_head.
  rewrite -E mem_sort => /candidates_sound[u []]; rewrite -mem_ranked => ur.
  by rewrite take_oversize // ur.
set u := nth _ _ _; have := candidates_complete klt; rewrite -/u -(mem_sort rank).
have srt := sort_sorted (@rank_total R T) (candidates (take k ranked)).
case E: (sort _ _) srt => [//|w l] srt uin /=; congr Some.
have win : w \in candidates (take k ranked) by rewrite -(mem_sort rank) E mem_head.
have [v [vU vk wv]] := candidates_sound win.
have wu : rank w (undrawn u).
  move: uin; rewrite inE => /orP[/eqP -> |]; first exact: rank_refl.
  by move: srt => /(order_path_min (@rank_trans R T)) /allP; apply.
have uU : u \in unpruned by rewrite -mem_ranked mem_nth.
have kv : (k <= index v ranked)%N by rewrite leqNgt -mem_kept.
have uv : rank u v.
  rewrite -(nth_index [::] (_ : v \in ranked)) ?mem_ranked // ranked_before //.
  by rewrite index_mem mem_ranked.
rewrite wv !rank_undrawn in wu *.
by rewrite (unpruned_slots vU uU) //; apply: rank_anti wu uv.
Qed.

Theorem run_grow n k : run draw (grow n (take k ranked)) = take (n + k) ranked.
Proof.
elim: n k => [|n IH] k //=; rewrite nextE; case: ltnP => klt /=; last first.
  by rewrite !take_oversize // (leq_trans klt) // leq_addl.
set u := nth _ _ _.
have uU : u \in unpruned by rewrite -mem_ranked mem_nth.
have step : run draw (grow n (rcons (take k ranked) u)) = take (n.+1 + k) ranked.
  by rewrite -take_nth // IH addSnnS.
rewrite sampled_undrawn; case: ifP => us /=; last by rewrite /tree.undrawn us.
have [P [e [ue ein _ _ _]]] := unpruned_child uU.
move: us step; rewrite ue /tree.undrawn => us; rewrite us.
have [_ ->] := pool_sampled ein (eqP us); exact.
Qed.

(* Growth = expand-and-prune, order included, on any draws. *)
Corollary growth_is_pruning n : run draw (grow n [::]) = prune rank n unpruned.
Proof. by have := run_grow n 0; rewrite take0 addn0. Qed.
End Pointwise.
End Growth.
