(* The template: drafting that grows node by node, the next slot a function of the kept tree
   alone, times a verifier that judges one node's candidates and meets two conditions, V1 and
   V2, is lossless for every target. Nothing here knows how slots are scored or candidates
   are tried. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes verification.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Template.
Variables (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T).
Notation node := (node R T).
Notation token := (token blank).
Implicit Types (u w P Q : node) (cands kept : seq node).
Hypothesis uV : uniq vocab.

(* ---- one node ---- *)
(* What a verifier does at a node: it accepts a candidate or emits a token and stops. *)
Definition outcome := (node + T)%type.
Definition emitted (o : outcome) : T := match o with inl u => token u | inr v => v end.
Definition emits (d : dist R outcome) v : R := mean d (fun o => (emitted o == v)%:R).
Definition accepts (d : dist R outcome) u : R := mean d (fun o => (o == inl u)%:R).
Definition within cands (o : outcome) : bool :=
  match o with inl u => u \in cands | inr v => v \in vocab end.
Definition worth (value : node -> R) (stop : T -> R) (o : outcome) : R :=
  match o with inl u => value u | inr v => stop v end.

Lemma sum_pick (s : seq T) v (F : T -> R) : uniq s -> v \in s ->
  sum_of s (fun x => (v == x)%:R * F x) = F v.
Proof.
move=> us vs; rewrite sum_ofE (bigD1_seq v) //= eqxx mul1r big1 ?addr0 // => x /negbTE xv.
by rewrite eq_sym xv mul0r.
Qed.

(* A node is worth what its emitted tokens are, and what its accepted candidates add. *)
Lemma worthE (d : dist R outcome) cands value stop : uniq cands ->
  all (fun u => token u \in vocab) cands -> all (fun wo => within cands wo.2) d ->
  mean d (worth value stop) = sum_of vocab (fun v => emits d v * stop v)
    + sum_of cands (fun u => accepts d u * (value u - stop (token u))).
Proof.
move=> uc cV dc.
have point o : within cands o -> worth value stop o
    = sum_of vocab (fun v => (emitted o == v)%:R * stop v)
    + sum_of cands (fun u => (o == inl u)%:R * (value u - stop (token u))).
  case: o => [u|v] /= ov.
    rewrite sum_pick ?(allP cV) // sum_ofE (bigD1_seq u) //= eqxx mul1r big1 => [|x xu].
      by rewrite addr0 addrC subrK.
    by rewrite (_ : (inl u == inl x :> outcome) = false) ?mul0r //; apply/negP => /eqP[e]; rewrite e eqxx in xu.
  by rewrite sum_pick // sum_ofE big1 ?addr0 // => x _; rewrite mul0r.
rewrite /emits /accepts /mean.
rewrite (@eq_sum_in _ _ d _ (fun wo => sum_of vocab (fun v => wo.1 * ((emitted wo.2 == v)%:R * stop v))
    + sum_of cands (fun u => wo.1 * ((wo.2 == inl u)%:R * (value u - stop (token u)))))); last first.
  by move=> wo wod; rewrite point ?(allP dc) // !sum_mull -mulrDr.
rewrite sum_add !(sum_swap d); congr (_ + _); apply: eq_sum => x.
  by rewrite -sum_mulr; apply: eq_sum => wo; rewrite mulrA.
by rewrite -sum_mulr; apply: eq_sum => wo; rewrite mulrA.
Qed.

(* ---- drafting and verifying ---- *)
Variables (p tail : seq T -> T -> R).
Variable next : seq node -> option node.
Variable judge : node -> seq node -> dist R outcome.

(* The kept tree grows: a sampled slot's token is drawn when the slot is kept. *)
Fixpoint draft n kept : dist R (seq node) :=
  if n is n'.+1 then
    if next kept is Some w then
      if is_sampled w
      then bind [seq (tail (tokens (behead w)) y, y) | y <- vocab] (fun y => draft n' (rcons kept (with_token w y)))
      else draft n' (rcons kept w)
    else [:: (1, kept)]
  else [:: (1, kept)].

Fixpoint walk depth kept P : dist R (seq T) :=
  if depth is d.+1
  then bind (judge P (candidates_of kept P)) (fun o =>
    match o with inl u => walk d kept u | inr v => [:: (1, rcons (tokens P) v)] end)
  else emit vocab (tokens P) (p (tokens P)).

(* The candidate lists that drafting can leave at a node; those to which a sampled slot may
   be added. *)
Variables (legal : node -> seq node -> Prop) (open : node -> seq node -> node -> Prop).
Definition no_sampled cands := [seq u <- cands | is_sampled u] == [::].

Record legal_lists : Prop := LegalLists {
  legal_nil : forall P, legal P [::];
  legal_uniq : forall P cands, legal P cands -> uniq cands;
  legal_vocab : forall P cands, legal P cands -> all (fun u => token u \in vocab) cands;
  open_tail : forall P cands w, open P cands w -> law vocab (tail (tokens P)) }.

(* V1: without the sampled node the target is emitted and a candidate c accepted with p(c).
   V2: with it, what is emitted and accepted does not depend on which other candidates are
   there, and averaged over its token it is what it was without the sampled node. *)
Record verifier : Prop := Verifier {
  judge_within : forall P cands, all (fun wo => within cands wo.2) (judge P cands);
  V1_emits : forall P cands v, legal P cands -> no_sampled cands -> v \in vocab ->
    emits (judge P cands) v = p (tokens P) v;
  V1_accepts : forall P cands u, legal P cands -> no_sampled cands -> u \in cands ->
    accepts (judge P cands) u = p (tokens P) (token u);
  V2_emits : forall P cands w v, legal P cands -> legal P (rcons cands w) -> ~~ no_sampled cands ->
    ~~ is_sampled w -> v \in vocab -> emits (judge P (rcons cands w)) v = emits (judge P cands) v;
  V2_accepts : forall P cands w u, legal P cands -> legal P (rcons cands w) -> ~~ no_sampled cands ->
    ~~ is_sampled w -> u \in cands -> accepts (judge P (rcons cands w)) u = accepts (judge P cands) u;
  V2_emits_mean : forall P cands w v, legal P cands -> no_sampled cands -> open P cands w -> v \in vocab ->
    sum_of vocab (fun y => tail (tokens P) y * emits (judge P (rcons cands (with_token w y))) v)
    = p (tokens P) v;
  V2_accepts_mean : forall P cands w u, legal P cands -> no_sampled cands -> open P cands w -> u \in cands ->
    sum_of vocab (fun y => tail (tokens P) y * accepts (judge P (rcons cands (with_token w y))) u)
    = p (tokens P) (token u) }.

(* A new node is a leaf at a node whose candidate list it leaves legal. *)
Record fits kept w Q : Prop := Fits {
  fits_child : is_child Q w;
  fits_leaf : candidates_of (rcons kept w) w = [::];
  fits_legal : legal Q (rcons (candidates_of kept Q) w) }.

(* The kept trees that can occur are closed under growth. *)
Record drafting (good : seq node -> Prop) : Prop := Drafting {
  good_root : good [::];
  good_legal : forall kept P, good kept -> legal P (candidates_of kept P);
  good_plain : forall kept w, good kept -> next kept = Some w -> ~~ is_sampled w ->
    fits kept w (behead w) /\ good (rcons kept w);
  good_sampled : forall kept w, good kept -> next kept = Some w -> is_sampled w ->
    [/\ no_sampled (candidates_of kept (behead w)), open (behead w) (candidates_of kept (behead w)) w &
      forall y, y \in vocab -> tail (tokens (behead w)) y != 0 ->
        [/\ fits kept (with_token w y) (behead w), token (with_token w y) = y & good (rcons kept (with_token w y))]] }.

Hypothesis p_law : forall c, law vocab (p c).
Hypotheses (LL : legal_lists) (VV : verifier).
Variable good : seq node -> Prop.
Hypothesis DD : drafting good.

Variable g : seq T -> R.
Hypothesis harmonic : forall c, g c = sum_of vocab (fun v => p c v * g (rcons c v)).

Lemma mean_walk d kept P : mean (walk d.+1 kept P) g
  = mean (judge P (candidates_of kept P)) (worth (fun u => mean (walk d kept u) g) (fun v => g (rcons (tokens P) v))).
Proof.
rewrite /= mean_bind; apply: eq_mean => -[u|v] //=.
by rewrite /mean /= mul1r addr0.
Qed.

Lemma walk_leaf d kept P : candidates_of kept P = [::] -> mean (walk d kept P) g = g (tokens P).
Proof.
case: d => [|d] no; first by rewrite mean_emit -harmonic.
rewrite mean_walk no (@worthE _ [::]) //; last exact: judge_within VV P [::].
rewrite /= addr0 harmonic; apply: eq_sum_in => v vV; congr (_ * _).
by apply: (V1_emits VV) => //; apply: legal_nil LL P.
Qed.

(* Only what the candidates themselves are worth counts. *)
Lemma eq_worth P cands value value' stop : {in cands, value =1 value'} ->
  mean (judge P cands) (worth value stop) = mean (judge P cands) (worth value' stop).
Proof.
move=> same; apply: eq_sum_in => wo wod; congr (_ * _).
move: (allP (judge_within VV P cands) _ wod); rewrite /worth /within.
by case: (wo.2) => // v vc; apply: same.
Qed.

Lemma other_parent kept w P Q : is_child Q w -> P != Q -> candidates_of (rcons kept w) P = candidates_of kept P.
Proof.
move=> wQ PQ; rewrite candidates_rcons; case: ifP => // wP.
by case: w wP wQ => //= e S /eqP -> /eqP QP; rewrite QP eqxx in PQ.
Qed.

(* Below the new node's parent nothing changes. *)
Lemma walk_below d kept w Q u : is_child Q w -> (size Q < size u)%N ->
  mean (walk d (rcons kept w) u) g = mean (walk d kept u) g.
Proof.
move=> wQ; elim: d u => [|d IH] u Qu //.
have uQ : u != Q by apply: contraTneq Qu => ->; rewrite ltnn.
rewrite !mean_walk (other_parent kept wQ uQ); apply: eq_worth => v; rewrite mem_filter => /andP[/child_size sv _].
by apply: IH; rewrite sv ltnW // ltnS.
Qed.

(* From a change at one node to the whole tree: averages pass through. *)
Lemma walk_average (I : Type) (ys : seq I) (wt : I -> R) (new : I -> node) kept Q :
  sum_of ys wt = 1 -> (forall y, is_child Q (new y)) ->
  (forall d, sum_of ys (fun y => wt y * mean (walk d.+1 (rcons kept (new y)) Q) g) = mean (walk d.+1 kept Q) g) ->
  forall d P, sum_of ys (fun y => wt y * mean (walk d (rcons kept (new y)) P) g) = mean (walk d kept P) g.
Proof.
move=> wt1 newQ base; elim=> [|d IH] P; first by rewrite sum_mulr wt1 mul1r.
have [->|PQ] := eqVneq P Q; first exact: base.
rewrite mean_walk; under eq_sum => y do rewrite mean_walk (other_parent kept (newQ y) PQ) -sum_mull.
rewrite (sum_swap ys); apply: eq_sum => wo.
under eq_sum => y do rewrite mulrCA.
rewrite sum_mull; congr (_ * _); rewrite /worth; case: (wo.2) => [u|v]; first exact: IH.
by rewrite sum_mulr wt1 mul1r.
Qed.

Section OneNode.
Variables (kept : seq node) (Q : node) (d : nat).
Hypothesis gk : good kept.
Notation cands := (candidates_of kept Q).
Let stop v := g (rcons (tokens Q) v).
Let value u := mean (walk d kept u) g.

Lemma walk_nodeE : mean (walk d.+1 kept Q) g = sum_of vocab (fun v => emits (judge Q cands) v * stop v)
  + sum_of cands (fun u => accepts (judge Q cands) u * (value u - stop (token u))).
Proof.
have lc := good_legal DD Q gk.
by rewrite mean_walk (worthE _ _ (legal_uniq LL lc) (legal_vocab LL lc)) //; apply: judge_within.
Qed.

(* With a new leaf w, whose own worth is that of its token. *)
Lemma walk_newE w : fits kept w Q -> mean (walk d.+1 (rcons kept w) Q) g
  = sum_of vocab (fun v => emits (judge Q (rcons cands w)) v * stop v)
  + sum_of cands (fun u => accepts (judge Q (rcons cands w)) u * (value u - stop (token u))).
Proof.
case=> wQ leaf lc; rewrite mean_walk candidates_rcons wQ.
rewrite (worthE _ _ (legal_uniq LL lc) (legal_vocab LL lc)) //; last exact: judge_within.
rewrite -cats1 sum_cat /= addr0 cats1; congr (_ + _); rewrite (walk_leaf d leaf).
have -> : tokens w = rcons (tokens Q) (token w).
  by case: w wQ {leaf lc} => //= e S /eqP ->; rewrite /tokens /= rev_cons.
rewrite /stop subrr mulr0 addr0; apply: eq_sum_in => u; rewrite mem_filter => /andP[/child_size su _].
by rewrite (walk_below _ _ wQ) // su.
Qed.
End OneNode.

Lemma add_plain_slot kept w d P : good kept -> next kept = Some w -> ~~ is_sampled w ->
  mean (walk d (rcons kept w) P) g = mean (walk d kept P) g.
Proof.
move=> gk nx wn; have [fw _] := good_plain DD gk nx wn; set Q := behead w in fw.
have avg := @walk_average unit [:: tt] (fun=> 1) (fun=> w) kept Q.
rewrite /= addr0 in avg; have {}avg := avg erefl (fun=> fits_child fw) (fun d => _) d P.
rewrite -avg /= ?mul1r ?addr0 // => d'; rewrite mul1r addr0.
rewrite (walk_newE _ fw) (walk_nodeE _ _ gk).
have lc := good_legal DD Q gk; have lw := fits_legal fw.
have [ns|ns] := boolP (no_sampled (candidates_of kept Q)); last first.
  congr (_ + _); apply: eq_sum_in => x xin; first by rewrite (V2_emits VV).
  by rewrite (V2_accepts VV).
have nsw : no_sampled (rcons (candidates_of kept Q) w) by rewrite /no_sampled filter_rcons (negbTE wn).
congr (_ + _); apply: eq_sum_in => x xin; first by rewrite !(V1_emits VV).
by rewrite !(V1_accepts VV) // mem_rcons inE xin orbT.
Qed.

(* An average of affine values, taken coefficient by coefficient. *)
Lemma mean_affine (t : T -> R) cands (E : T -> T -> R) (B : T -> node -> R) (f : T -> R) (h : node -> R) :
  sum_of vocab (fun y => t y * (sum_of vocab (fun v => E y v * f v) + sum_of cands (fun u => B y u * h u)))
  = sum_of vocab (fun v => sum_of vocab (fun y => t y * E y v) * f v)
  + sum_of cands (fun u => sum_of vocab (fun y => t y * B y u) * h u).
Proof.
have half (A : Type) (s : seq A) (F : T -> A -> R) (k : A -> R) :
    sum_of vocab (fun y => t y * sum_of s (fun x => F y x * k x))
    = sum_of s (fun x => sum_of vocab (fun y => t y * F y x) * k x).
  rewrite (eq_sum _ (g := fun y => sum_of s (fun x => t y * F y x * k x))).
    by rewrite sum_swap; apply: eq_sum => x; rewrite sum_mulr.
  by move=> y; rewrite -sum_mull; apply: eq_sum => x; rewrite mulrA.
rewrite -(half _ vocab) -(half _ cands) -sum_add; apply: eq_sum => y.
by rewrite mulrDr.
Qed.

Lemma add_sampled_slot kept w d P : good kept -> next kept = Some w -> is_sampled w ->
  sum_of vocab (fun y => tail (tokens (behead w)) y * mean (walk d (rcons kept (with_token w y)) P) g)
  = mean (walk d kept P) g.
Proof.
move=> gk nx ws; have [ns ow fy] := good_sampled DD gk nx ws.
have lc := good_legal DD (behead w) gk; have lt := open_tail LL ow.
have ch y : is_child (behead w) (with_token w y).
  by case: (w) ws => // -[[[a b] e] f] S _; apply: eqxx.
apply: (@walk_average _ vocab _ (with_token w) kept (behead w)); [exact: law_sum|exact: ch|] => d'.
rewrite (@eq_sum_in _ _ vocab _ (fun y => tail (tokens (behead w)) y * (
    sum_of vocab (fun v => emits (judge (behead w) (rcons (candidates_of kept (behead w)) (with_token w y))) v
      * g (rcons (tokens (behead w)) v))
  + sum_of (candidates_of kept (behead w)) (fun u =>
      accepts (judge (behead w) (rcons (candidates_of kept (behead w)) (with_token w y))) u
      * (mean (walk d' kept u) g - g (rcons (tokens (behead w)) (token u))))))); last first.
  move=> y yV; have [ty|ty] := eqVneq (tail (tokens (behead w)) y) 0; first by rewrite ty !mul0r.
  by have [fw _ _] := fy y yV ty; rewrite (walk_newE _ fw).
rewrite mean_affine (walk_nodeE _ _ gk); congr (_ + _); apply: eq_sum_in => x xin.
  by rewrite (V2_emits_mean VV lc ns ow xin) (V1_emits VV lc ns xin).
by rewrite (V2_accepts_mean VV lc ns ow xin) (V1_accepts VV lc ns xin).
Qed.

Theorem template_lossless D n kept : good kept ->
  mean (draft n kept) (fun t => mean (walk D t [::]) g) = mean (walk D kept [::]) g.
Proof.
elim: n kept => [|n IH] kept gk /=; first by rewrite /mean /= mul1r addr0.
case E: (next kept) => [w|]; last by rewrite /mean /= mul1r addr0.
have [ws|ws] := boolP (is_sampled w); last first.
  by have [_ gw] := good_plain DD gk E ws; rewrite IH // add_plain_slot.
rewrite mean_bind -(add_sampled_slot D [::] gk E ws) {1}/mean sum_map; apply: eq_sum_in => y yV /=.
have [->|ty] := eqVneq (tail (tokens (behead w)) y) 0; first by rewrite !mul0r.
congr (_ * _); apply: IH; have [_ _ fy] := good_sampled DD gk E ws.
by have [] := fy y yV ty.
Qed.

Corollary template_cycle D n : mean (bind (draft n [::]) (fun t => walk D t [::])) g = g [::].
Proof. by rewrite mean_bind template_lossless ?walk_leaf //; apply: good_root DD. Qed.
End Template.
