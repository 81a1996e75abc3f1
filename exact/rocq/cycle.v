(* One cycle of RheoSampling: by induction on the budget, admitting one node after the
   other, the value of every continuation stays what the target makes it (appendix C.3). *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes verification.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section OneCycle.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
Variables (p q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).
Variable arrange : seq T -> seq (node R T) -> seq (node R T).
Notation node := (node R T).
Implicit Types (u w P Q : node) (kept t : seq node).
Notation token := (token blank).
Notation tail := (tail vocab q s m).
Notation children := (children vocab blank q s m K proxy).
Notation expandable := (expandable vocab q s m K).
Notation drawn := (drawn blank).
Notation next := (next vocab blank q s m K D proxy).
Notation grow := (grow vocab blank q s m K D proxy).
Notation layered := (layered vocab blank q s m K D proxy (@rank R T)).
Notation verify := (verify vocab blank p q s m arrange).
Notation law_of := (outcomes (weight vocab q s m) (choices vocab q s m)).

(* One cycle, as in the paper: draw the unpruned tree, keep the R best, verify. *)
Definition cycle budget : dist R (seq T) :=
  bind (law_of layered) (fun U => verify D (prune (@rank R T) budget U) [::]).

(* One cycle, grown. *)
Definition grown_cycle budget : dist R (seq T) :=
  bind (law_of (grow budget [::])) (fun t => verify D t [::]).

Hypothesis A : assumptions vocab blank q s m K proxy.
Hypothesis p_law : forall c, law vocab (p c).
Hypothesis arrange_perm : forall c l, perm_eq (arrange c l) l.

(* Kept trees that can occur: every node in its parent's pool as it stands, no slot
   twice, a sampled token in the support of the tail law. *)
Record proper kept : Prop := Proper {
  kept_uniq : uniq kept;
  kept_pool : forall v P, v \in kept -> is_child P v -> v \in children (drawn kept P) P;
  kept_drawn : forall P y, drawn kept P = Some y ->
    expandable P /\ y \in support vocab q s m (tokens P);
  kept_parent : forall v P, v \in kept -> is_child P v -> (P == [::]) || (P \in kept) }.

Lemma proper_root : proper [::].
Proof. by split. Qed.

Lemma next_facts kept w : next kept = Some w -> exists Q,
  [/\ is_child Q w, behead w = Q, w \notin kept, (Q == [::]) || (Q \in kept)
    & w \in visible vocab blank q s m K proxy kept Q].
Proof.
move/next_candidate/flatten_mapP => [Q Qf].
have /andP[_ Qin] : expanded K D kept Q && (Q \in [::] :: kept) by rewrite -mem_filter.
rewrite mem_filter => /andP[wk wvis]; exists Q.
have wc : w \in children (drawn kept Q) Q.
  by move: wvis; rewrite /visible; case: growth.drawn => [y|] //; rewrite mem_filter => /andP[].
by have [e we _] := children_inv wc; rewrite we in wk wvis *; split; rewrite //= -?in_cons.
Qed.

Lemma visible_children kept Q w : w \in visible vocab blank q s m K proxy kept Q ->
  w \in children (drawn kept Q) Q.
Proof. by rewrite /visible; case: growth.drawn => [y|] //; rewrite mem_filter => /andP[]. Qed.

Lemma fresh_leaf kept w Q : proper kept -> w \notin kept -> is_child Q w ->
  candidates_of (rcons kept w) w = [::].
Proof.
move=> pk wk wQ; rewrite candidates_rcons.
have -> : is_child w w = false by apply/negP => /child_size /eqP; rewrite eqn_leq ltnn andbF.
apply/eqP; rewrite -(negbK (_ == _)) -has_filter; apply/hasPn => v vk.
apply/negP => wv; have := kept_parent pk vk wv; rewrite (negbTE wk) orbF => /eqP w0.
by rewrite w0 in wQ.
Qed.

Lemma drawn_kept kept P v : v \in kept -> is_child P v -> is_sampled v -> drawn kept P != None.
Proof. by move=> vk vP vs; apply/eqP => dn; apply: (drawn_none dn vk vP vs). Qed.

(* One draw under which everything in sight at Q is a pool of distinct tokens. *)
Lemma witness kept Q : proper kept -> exists y0, (expandable Q -> y0 \in rest vocab q m (tokens Q)) /\
  forall v, v \in children (drawn kept Q) Q -> ~~ is_sampled v -> v \in children (Some y0) Q.
Proof.
move=> pk; case E: growth.drawn => [y|].
  by exists y; split=> // _; have [_ /support_rest] := kept_drawn pk E.
have [ex|nex] := boolP (expandable Q); last first.
  by exists blank; split=> [ex|v]; [case/negP: nex|rewrite (children_nil_draw blank proxy None (Some blank) nex)].
have := weight1 A ex; case C: (choices vocab q s m Q) => [|y0 l].
  by move/eqP; rewrite eq_sym oner_eq0.
move=> _; exists y0; split=> [_|v /children_inv[e -> ein] /= en].
  by apply: (@support_rest _ _ _ _ s); rewrite -/(choices vocab q s m Q) C mem_head.
by rewrite mem_children; apply: pool_none.
Qed.

Lemma uniq_map_inj (X Y : eqType) (f : X -> Y) (l : seq X) a b : uniq (map f l) ->
  a \in l -> b \in l -> f a = f b -> a = b.
Proof.
elim: l => //= x l IH /andP[xl ul]; rewrite !inE => /predU1P[->|al] /predU1P[->|bl] //; last exact: IH.
  by move=> e; rewrite e map_f in xl.
by move=> e; rewrite -e map_f in xl.
Qed.

Section Step.
Variables (kept : seq node) (w Q : node).
Hypotheses (pk : proper kept) (wQ : is_child Q w) (wk : w \notin kept)
  (Qk : (Q == [::]) || (Q \in kept)) (wvis : w \in visible vocab blank q s m K proxy kept Q).
Let others := [seq v <- candidates_of kept Q | ~~ is_sampled v].

Lemma pool_token_inj y0 u v : (expandable Q -> y0 \in rest vocab q m (tokens Q)) ->
  u \in children (Some y0) Q -> v \in children (Some y0) Q -> token u = token v -> u = v.
Proof.
move=> yr; apply: uniq_map_inj; rewrite -map_comp.
exact: (pool_tokens_uniq blank proxy (uniq_vocab A) (score Q) yr).
Qed.

Lemma kept_children u : u \in candidates_of kept Q -> u \in children (drawn kept Q) Q.
Proof. by rewrite mem_filter => /andP[uQ uk]; apply: kept_pool. Qed.

Lemma plain_in_pool u : u \in others -> u \in children (drawn kept Q) Q /\ ~~ is_sampled u.
Proof. by rewrite mem_filter => /andP[un uc]; split=> //; apply: kept_children. Qed.

Lemma others_uniq : uniq (map token others).
Proof.
have [y0 [yr vis]] := witness Q pk; rewrite map_inj_in_uniq; first by rewrite !filter_uniq // kept_uniq.
move=> u v /plain_in_pool[uc un] /plain_in_pool[vc vn]; apply: (pool_token_inj yr); exact: vis.
Qed.

Lemma pool_token_vocab y0 u : (expandable Q -> y0 \in rest vocab q m (tokens Q)) ->
  u \in children (Some y0) Q -> token u \in vocab.
Proof. by move=> yr /children_inv[e -> ein] /=; apply: pool_vocab yr ein. Qed.

Lemma others_vocab : all (fun u => token u \in vocab) others.
Proof.
have [y0 [yr vis]] := witness Q pk; apply/allP => u /plain_in_pool[uc un].
by apply: (pool_token_vocab yr); apply: vis.
Qed.

Lemma sampled_kept u : u \in candidates_of kept Q -> is_sampled u ->
  [/\ law vocab (tail (tokens Q)), token u \in vocab & tail (tokens Q) (token u) != 0].
Proof.
rewrite mem_filter => /andP[uQ uk] us.
have := drawn_kept uk uQ us; case E: growth.drawn => [y|] // _.
have [ex ys] := kept_drawn pk E.
have uy : token u = y.
  have := kept_pool pk uk uQ; rewrite E => /children_inv[e ue ein]; move: us; rewrite ue /= => /eqP es.
  by have [_ ->] := pool_sampled ein es.
split; first by apply: tail_law ex; [apply: uniq_vocab A|apply/law_ge0/(s_law A)].
  by rewrite uy; apply: rest_vocab (support_rest ys).
rewrite uy tail_support // gt_eqF // divr_gt0 //; first by move: ys; rewrite mem_filter => /andP[].
by case/andP: ex.
Qed.

Lemma plain_facts : ~~ is_sampled w -> token w \in vocab /\ token w \notin map token others.
Proof.
move=> wn; have [y0 [yr vis]] := witness Q pk.
have wc : w \in children (Some y0) Q by apply: vis => //; apply: visible_children.
split; first exact: pool_token_vocab wc.
apply/mapP => -[u uo e]; have [uc un] := plain_in_pool uo.
have wu : w = u by apply: (pool_token_inj yr wc) e; apply: vis.
by move: uo wk; rewrite -wu !mem_filter => /and3P[_ _ ->].
Qed.

Lemma proper_plain : ~~ is_sampled w -> proper (rcons kept w).
Proof.
move=> wn; have dr P : drawn (rcons kept w) P = drawn kept P.
  by rewrite drawn_rcons (negbTE wn) andbF; case: growth.drawn.
split.
- by rewrite rcons_uniq wk kept_uniq.
- move=> v P; rewrite mem_rcons inE dr => /predU1P[-> wP|]; last exact: kept_pool.
  have -> : P = Q by case: (w) wP wQ => //= e S /eqP -> /eqP ->.
  exact: visible_children.
- by move=> P y; rewrite dr; apply: kept_drawn.
- move=> v P; rewrite !mem_rcons !inE => /predU1P[-> wP|vk vP].
    have -> : P = Q by case: (w) wP wQ => //= e S /eqP -> /eqP ->.
    by case/orP: Qk => ->; rewrite ?orbT.
  by case/orP: (kept_parent pk vk vP) => ->; rewrite ?orbT.
Qed.

Section Sampled.
Hypothesis ws : is_sampled w.

Lemma sampled_entry : [/\ drawn kept Q = None, expandable Q
  & w = (m, 1%N, blank, score Q * proxy (tokens Q) blank) :: Q].
Proof.
move: wvis ws; rewrite /visible; case: growth.drawn => [y|].
  by rewrite mem_filter => /andP[/negbTE ->].
case/children_inv => e -> /= ein /eqP es; have [ex ->] := pool_sampled ein es.
by split.
Qed.

Lemma sampled_new y : [/\ is_child Q (with_token w y), with_token w y \notin kept,
  is_sampled (with_token w y) & token (with_token w y) = y].
Proof.
have [dn _ we] := sampled_entry; rewrite we /= eqxx; split=> //.
by apply/negP => bad; have := drawn_kept bad (_ : is_child Q _); rewrite dn /= eqxx => /(_ isT isT).
Qed.

Lemma plain_lead u : u \in others -> tail (tokens Q) (token u) = 0.
Proof.
case/plain_in_pool; have [dn ex _] := sampled_entry; rewrite dn => /children_inv[e -> ein] /= en.
rewrite /pool.tail; case: ifP => // tr.
case: (@lead_rest_disjoint _ _ vocab q m (uniq_vocab A) (tokens Q) (token_of e)) => //.
apply: (pool_lead_token ein); case ke: (kind_of e) (pool_kind ein) en => [|[|[|//]]] // _ _.
by have [] := pool_fill ex ein ke.
Qed.

Lemma none_sampled : [seq v <- candidates_of kept Q | is_sampled v] = [::].
Proof.
have [dn _ _] := sampled_entry.
apply/eqP; rewrite -(negbK (_ == _)) -has_filter; apply/hasPn => v; rewrite mem_filter => /andP[vQ vk].
by apply/negP => vs; apply: (drawn_none dn vk vQ vs).
Qed.

Lemma proper_sampled y : y \in choices vocab q s m Q -> proper (rcons kept (with_token w y)).
Proof.
move=> yc; have [dn ex we] := sampled_entry; have [nQ nk ns ny] := sampled_new y.
have dr P : drawn (rcons kept (with_token w y)) P = if P == Q then Some y else drawn kept P.
  rewrite drawn_rcons ns andbT ny; case: eqP => [->|ne]; first by rewrite dn nQ.
  case: growth.drawn => //; case: ifP => // nP; case: ne.
  by case: (with_token w y) nP nQ => //= e S /eqP -> /eqP ->.
have onlyQ P : is_child P (with_token w y) -> P = Q.
  by case: (with_token w y) nQ => //= e S /eqP -> /eqP ->.
split.
- by rewrite rcons_uniq nk kept_uniq.
- move=> v P; rewrite mem_rcons inE dr => /predU1P[-> /onlyQ ->|vk vP].
    rewrite eqxx we mem_children (proxy_blind A _ blank y).
    exact: (sampled_in_pool _ _ _ (Some y)).
  case: eqP => [PQ|_]; last exact: kept_pool.
  have := kept_pool pk vk vP; rewrite PQ dn => /children_inv[e ve ein]; rewrite ve mem_children.
  apply: pool_none => //; apply/negP => es.
  by apply: (drawn_none dn vk); rewrite -?PQ // ve.
- move=> P z; rewrite dr; case: eqP => [-> [<-] //|_]; exact: kept_drawn.
- move=> v P; rewrite !mem_rcons !inE => /predU1P[-> /onlyQ ->|vk vP].
    by case/orP: Qk => ->; rewrite ?orbT.
  by case/orP: (kept_parent pk vk vP) => ->; rewrite ?orbT.
Qed.
End Sampled.
End Step.

(* ---- Theorem 6, by induction on the budget ---- *)
Variable g : seq T -> R.
Hypothesis harmonic : forall c, g c = sum_of vocab (fun v => p c v * g (rcons c v)).

Lemma step_plain kept w d P : proper kept -> next kept = Some w -> ~~ is_sampled w ->
  mean (verify d (rcons kept w) P) g = mean (verify d kept P) g.
Proof.
move=> pk nx wn; have [Q [wQ _ wk Qk wvis]] := next_facts nx.
have [wV wo] := plain_facts pk wk wvis wn.
have := @verify_average R T vocab blank p q s m arrange g unit [:: tt] (fun=> 1) (fun=> w) kept Q.
rewrite /= addr0 => /(_ erefl (fun=> wQ)) avg.
have {}avg := avg (fun d => _) d P; rewrite -avg /= ?mul1r ?addr0 // => d'.
rewrite mul1r addr0; apply: add_plain => //; first exact: uniq_vocab A.
- exact: others_uniq.
- exact: others_vocab.
- exact: sampled_kept.
- exact: fresh_leaf pk wk wQ.
Qed.

Lemma step_sampled kept w d P : proper kept -> next kept = Some w -> is_sampled w ->
  sum_of (choices vocab q s m (behead w)) (fun y => weight vocab q s m (behead w) y
    * mean (verify d (rcons kept (with_token w y)) P) g)
  = mean (verify d kept P) g.
Proof.
move=> pk nx ws; have [Q [wQ -> wk Qk wvis]] := next_facts nx.
have [dn ex we] := sampled_entry wvis ws.
apply: (@verify_average R T vocab blank p q s m arrange g _ _ _ (with_token w) kept Q).
- exact: (weight1 A ex).
- by move=> y; have [] := sampled_new wvis ws y.
move=> d'; rewrite -sum_tail; [|exact: uniq_vocab A|exact/law_ge0/(s_law A)].
apply: add_sampled => //; first exact: uniq_vocab A.
- exact: others_uniq.
- exact: others_vocab.
- by move=> y; have [nQ nk _ _] := sampled_new wvis ws y; apply: fresh_leaf pk nk nQ.
- exact: none_sampled wvis ws.
- by apply: tail_law ex; [apply: uniq_vocab A|apply/law_ge0/(s_law A)].
- by move=> u; apply: (plain_lead pk wvis ws).
Qed.

Theorem grow_lossless n kept : proper kept ->
  mean (law_of (grow n kept)) (fun t => mean (verify D t [::]) g) = mean (verify D kept [::]) g.
Proof.
elim: n kept => [|n IH] kept pk; first by rewrite /mean /= mul1r addr0.
rewrite /=; case E: growth.next => [w|]; last by rewrite /mean /= mul1r addr0.
have [Q [wQ be wk Qk wvis]] := next_facts E.
have [ws|ws] := boolP (is_sampled w); last first.
  by rewrite IH; [apply: step_plain|apply: (proper_plain pk wQ wk Qk wvis)].
rewrite (mean_outcomes_draw (weight vocab q s m) (choices vocab q s m)).
rewrite -(step_sampled _ _ pk E ws); apply: eq_sum_in => y yc; congr (_ * _); apply: IH.
by rewrite be in yc; apply: (proper_sampled pk Qk wvis ws).
Qed.

Theorem grown_cycle_lossless budget : mean (grown_cycle budget) g = g [::].
Proof.
rewrite /grown_cycle mean_bind grow_lossless; last exact: proper_root.
exact: (verify_leaf blank q s m arrange_perm harmonic).
Qed.

(* Theorem 6, one cycle: expand-and-prune, then Algorithm 1. *)
Theorem cycle_lossless budget : mean (cycle budget) g = g [::].
Proof.
rewrite -(grown_cycle_lossless budget) /cycle /grown_cycle !mean_bind.
by rewrite (growth_law D A _ (fun t => mean (verify D t [::]) g)).
Qed.
End OneCycle.
