(* Nodes, their ranking, and the unpruned tree (section 3.2, appendix C.1): the K best
   nodes of a level are expanded, D levels, then the R best of all are kept. The
   sampled tokens come from an assignment, which gives every parent its draw. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Lexicographic.
Variable A : Type.
Implicit Types (r : rel A).

Definition lex r1 r2 : rel A := fun x y => r1 x y && (r1 y x ==> r2 x y).
Fixpoint seq_lex r (s t : seq A) : bool :=
  match s, t with
  | [::], _ => true
  | _ :: _, [::] => false
  | x :: s', y :: t' => r x y && (r y x ==> seq_lex r s' t')
  end.

Lemma lex_total r1 r2 : total r1 -> total r2 -> total (lex r1 r2).
Proof.
move=> t1 t2 x y; rewrite /lex; have := t1 x y; have := t2 x y.
by case: (r1 x y); case: (r1 y x).
Qed.

Lemma lex_trans r1 r2 : transitive r1 -> transitive r2 -> transitive (lex r1 r2).
Proof.
move=> t1 t2 y x z /andP[xy xy2] /andP[yz yz2]; rewrite /lex (t1 y x z) //=.
apply/implyP => zx; apply: (t2 y).
  by apply: (implyP xy2); apply: t1 zx.
by apply: (implyP yz2); apply: t1 xy.
Qed.

Lemma seq_lex_total r : total r -> total (seq_lex r).
Proof.
move=> tr; elim=> [|x s IH] [|y t] //=; have := tr x y; have := IH t.
by case: (r x y); case: (r y x).
Qed.

Lemma seq_lex_trans r : transitive r -> transitive (seq_lex r).
Proof.
move=> tr t s u; elim: t s u => [|y t IH] [|x s] [|z u] //= /andP[xy xy2] /andP[yz yz2].
rewrite (tr y) //=; apply/implyP => zx; apply: IH.
  by apply: (implyP xy2); apply: tr zx.
by apply: (implyP yz2); apply: tr xy.
Qed.
End Lexicographic.

Lemma seq_lex_anti (A : eqType) (r : rel A) : antisymmetric r -> antisymmetric (seq_lex r).
Proof.
move=> ar; elim=> [|x s IH] [|y t] //= /andP[/andP[xy st] /andP[yx ts]].
by rewrite (ar x y) ?xy // (IH t) // (implyP st) ?(implyP ts).
Qed.

Section Tree.
Variables (R : realFieldType) (T : eqType).
Variables (vocab : seq T) (blank : T).
Variables (q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).

(* A node is the list of entries from itself up to the root; the root is []. *)
Definition node := seq (entry R T).
Implicit Types (u v w P : node).

Definition score v : R := if v is e :: _ then score_of e else 1.
Definition token v : T := if v is e :: _ then token_of e else blank.
Definition tokens v : seq T := rev (map (@token_of R T) v).
Definition slots v : seq nat := rev (map (@slot_of R T) v).
Definition is_sampled v := if v is e :: _ then kind_of e == 1%N else false.
Definition is_fill v := if v is e :: _ then kind_of e == 2%N else false.
Definition is_child P v := if v is _ :: P' then P' == P else false.
Definition with_token v y : node :=
  if v is (slot, kind, _, sc) :: P then (slot, kind, y, sc) :: P else v.
(* A node as it looks before its draw. *)
Definition undrawn v := if is_sampled v then with_token v blank else v.

Definition expandable P := has_sampled vocab q s m K (tokens P).
Definition children (y : option T) P : seq node :=
  [seq e :: P | e <- pool vocab blank q s m K proxy (tokens P) (score P) y].

(* The ranking: path score falling, then depth rising, then left to right (parents in
   rank order, siblings in slot order). A token never matters. *)
Definition rank : rel node :=
  lex (fun u v => score v <= score u)
  (lex (fun u v => size u <= size v)%N
  (lex (fun u v => seq_lex (fun a b => b <= a) (map (@score_of R T) u) (map (@score_of R T) v))
       (fun u v => seq_lex leq (slots u) (slots v)))).

(* Any other ranking may stand for it below: a wrong one may read tokens. *)
Variable ranking : rel node.

Definition best_of n (level : seq node) := take n (sort ranking level).
Definition prune n (U : seq node) : seq node := take n (sort ranking U).

(* The unpruned tree on given draws, level by level. *)
Definition grown_pool (draw : node -> T) P := children (Some (draw P)) P.
Fixpoint level (draw : node -> T) d : seq node :=
  if d is d'.+1 then flatten [seq grown_pool draw P | P <- best_of K (level draw d')]
  else [:: [::]].
Definition unpruned draw : seq node := flatten [seq level draw d | d <- iota 1 D].

(* The same as a program that draws as it goes (the layered construction). *)
Fixpoint draw_pools (A : Type) (parents : seq node) (k : seq node -> prog T [eqType of node] A)
    : prog T [eqType of node] A :=
  match parents with
  | [::] => k [::]
  | P :: Ps =>
      if expandable P
      then Draw (P : [eqType of node]) (fun y => draw_pools Ps (fun r => k (children (Some y) P ++ r)))
      else draw_pools Ps (fun r => k (children None P ++ r))
  end.
Fixpoint layers d (last acc : seq node) : prog T [eqType of node] (seq node) :=
  if d is d'.+1
  then draw_pools (best_of K last) (fun next => layers d' next (acc ++ next))
  else Ret acc.
Definition layered := layers D [:: [::]] [::].

(* ---- facts about nodes ---- *)
Lemma with_token_id v : with_token v (token v) = v.
Proof. by case: v => // -[[[a b] c] d] P. Qed.

Lemma children_inv y P v : v \in children y P ->
  exists2 e, v = e :: P & e \in pool vocab blank q s m K proxy (tokens P) (score P) y.
Proof. by case/mapP => e ein ->; exists e. Qed.

Lemma mem_children y P e :
  (e :: P \in children y P) = (e \in pool vocab blank q s m K proxy (tokens P) (score P) y).
Proof. by apply: mem_map => a b []. Qed.

Lemma children_nil_draw y y' P : ~~ expandable P -> children y P = children y' P.
Proof.
by rewrite /expandable /children /pool /tail_entries => /negbTE ->.
Qed.

Lemma slots_size v : size (slots v) = size v.
Proof. by rewrite size_rev size_map. Qed.

Lemma undrawn_shape v : [/\ map (@score_of R T) (undrawn v) = map (@score_of R T) v,
  slots (undrawn v) = slots v & score (undrawn v) = score v].
Proof.
by rewrite /undrawn; case: ifP => //; case: v => // -[[[a b] c] d] P.
Qed.

Lemma size_undrawn v : size (undrawn v) = size v.
Proof. by have [_ eqs _] := undrawn_shape v; rewrite -slots_size eqs slots_size. Qed.

Lemma child_undrawn P v : is_child P (undrawn v) = is_child P v.
Proof. by rewrite /undrawn; case: ifP => //; case: v => // -[[[a b] c] d] Q. Qed.

Lemma sampled_undrawn v : is_sampled (undrawn v) = is_sampled v.
Proof. by rewrite /undrawn; case: ifP => [|-> //]; case: v => // -[[[a b] c] d] P. Qed.

(* ---- facts about the ranking ---- *)
Lemma rank_total : total rank.
Proof.
do !apply: lex_total; first by move=> x y; apply: le_total.
- by move=> x y; apply: leq_total.
- by move=> x y; apply: seq_lex_total => a b; apply: le_total.
- by move=> x y; apply/seq_lex_total/leq_total.
Qed.

Lemma rank_trans : transitive rank.
Proof.
do !apply: lex_trans; first by move=> y x z yx zy; apply: le_trans zy yx.
- by move=> y x z; apply: leq_trans.
- by move=> y x z; apply: seq_lex_trans => b a c ba cb; apply: le_trans cb ba.
- by move=> y x z; apply/seq_lex_trans/leq_trans.
Qed.

Lemma rank_anti u v : rank u v -> rank v u -> slots u = slots v.
Proof.
rewrite /rank /lex => /andP[a1 /implyP b1] /andP[a2 /implyP b2].
have /andP[c1 /implyP d1] := b1 a2; have /andP[c2 /implyP d2] := b2 a1.
have /andP[e1 /implyP f1] := d1 c2; have /andP[e2 /implyP f2] := d2 c1.
by apply: (seq_lex_anti anti_leq); rewrite f1 // f2.
Qed.

Lemma rank_undrawn u v : (rank (undrawn u) v = rank u v) * (rank u (undrawn v) = rank u v).
Proof.
have [a1 b1 c1] := undrawn_shape u; have [a2 b2 c2] := undrawn_shape v.
by split; rewrite /rank /lex ?(a1, b1, c1) ?(a2, b2, c2) !size_undrawn.
Qed.

(* A parent is ranked before its children (Lemma 5 with the tie rule). *)
Lemma rank_parent P e : score_of e <= score P -> rank P (e :: P) /\ ~~ rank (e :: P) P.
Proof.
move=> le; have sz : (size (e :: P) <= size P)%N = false by rewrite /= ltnn.
by rewrite /rank /lex /= le leqnSn sz /=; split; rewrite ?implybT // andbF.
Qed.

(* Siblings of one score are ranked by slot. *)
Lemma rank_sibling P e e' : score_of e' <= score_of e -> (slot_of e < slot_of e')%N ->
  rank (e :: P) (e' :: P) /\ ~~ rank (e' :: P) (e :: P).
Proof.
move=> le lt.
have slex : seq_lex leq (slots (e :: P)) (slots (e' :: P)) &&
           ~~ seq_lex leq (slots (e' :: P)) (slots (e :: P)).
  rewrite /slots /= !rev_cons -!cats1; elim: (rev _) => [|x l IH] /=.
    by rewrite ltnW //= implybT /= leqNgt lt.
  by rewrite leqnn.
have refl l : seq_lex (fun a b : R => b <= a) l l by elim: l => //= a l ->; rewrite lexx implybT.
case/andP: slex => s1 s2; rewrite /rank /lex /= !le leqnn /= !refl.
split; first by rewrite s1 !implybT.
by case: (_ <= score_of e') => //=; rewrite (negbTE s2) andbF.
Qed.
End Tree.
