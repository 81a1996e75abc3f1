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
Proof. by apply: (map_uniq (f := @slots R T)); rewrite -map_comp
  (eq_map (f2 := (fun i => rcons (slots P) i) \o @slot_of R T)); last by [];
  rewrite map_comp map_inj_uniq ?pool_slots_uniq //; apply: rcons_injr. Qed.
End Classes.
