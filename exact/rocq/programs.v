(* Random programs: every draw carries an address, and the law drawn from is a
   function of the address. A program has a law (draw as you go) and a run on given
   draws (a token for every address, all independent). The two agree for programs
   that read no address twice; so two programs that run alike have one law. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Dist.
Variable R : realFieldType.

(* A finite law: weighted outcomes, an outcome may occur more than once. *)
Definition dist (A : Type) := seq (R * A).
Definition mean A (d : dist A) (f : A -> R) : R := sum_of d (fun wa => wa.1 * f wa.2).
Definition scale A (w : R) (d : dist A) : dist A := [seq (w * wa.1, wa.2) | wa <- d].
Definition bind A B (d : dist A) (k : A -> dist B) : dist B :=
  flatten [seq scale wa.1 (k wa.2) | wa <- d].

Lemma mean_scale A w (d : dist A) f : mean (scale w d) f = w * mean d f.
Proof. by rewrite /mean sum_map -sum_mull; apply: eq_sum => x; rewrite mulrA. Qed.

Lemma mean_cat A (d e : dist A) f : mean (d ++ e) f = mean d f + mean e f.
Proof. exact: sum_cat. Qed.

Lemma mean_bind A B (d : dist A) (k : A -> dist B) f :
  mean (bind d k) f = mean d (fun a => mean (k a) f).
Proof.
by elim: d => //= wa d IH; rewrite /bind /= mean_cat mean_scale IH.
Qed.

Lemma eq_mean A (d : dist A) f g : f =1 g -> mean d f = mean d g.
Proof. by move=> fg; apply: eq_sum => x; rewrite fg. Qed.

Lemma mean_const A (d : dist A) c : mean d (fun=> c) = mean d (fun=> 1) * c.
Proof. by rewrite /mean -sum_mulr; apply: eq_sum => x; rewrite mulr1. Qed.
End Dist.

Section Programs.
Variables (R : realFieldType) (T N : eqType).
Variables (weight : N -> T -> R) (support : N -> seq T).
(* The addresses at which there is a law to draw from. *)
Variable ok : pred N.
Hypothesis weight1 : forall n, ok n -> sum_of (support n) (weight n) = 1.

Inductive prog (A : Type) := Ret of A | Draw of N & (T -> prog A).
Arguments Ret {A}.
Arguments Draw {A}.

Fixpoint outcomes A (P : prog A) : dist R A :=
  match P with
  | Ret a => [:: (1, a)]
  | Draw n k => flatten [seq scale (weight n y) (outcomes (k y)) | y <- support n]
  end.

Fixpoint run A (w : N -> T) (P : prog A) : A :=
  match P with Ret a => a | Draw n k => run w (k (w n)) end.

Fixpoint reads A (P : prog A) : seq N :=
  match P with
  | Ret _ => [::]
  | Draw n k => n :: flatten [seq reads (k y) | y <- support n]
  end.

Fixpoint avoids A (n : N) (P : prog A) : Prop :=
  match P with Ret _ => True | Draw b k => b != n /\ forall y, avoids n (k y) end.

Fixpoint once A (P : prog A) : Prop :=
  match P with
  | Ret _ => True
  | Draw n k => [/\ ok n, forall y, avoids n (k y) & forall y, once (k y)]
  end.

Lemma mean_outcomes_draw A n (k : T -> prog A) f :
  mean (outcomes (Draw n k)) f
  = sum_of (support n) (fun y => weight n y * mean (outcomes (k y)) f).
Proof. by rewrite /=; elim: (support n) => //= y s IH; rewrite mean_cat mean_scale IH. Qed.

Lemma mean_outcomes1 A (P : prog A) : once P -> mean (outcomes P) (fun=> 1) = 1.
Proof.
elim: P => [a|n k IH] /=; first by rewrite /mean /= mulr1 addr0.
case=> okn _ oncek; rewrite (mean_outcomes_draw n k) -[RHS](weight1 okn).
by apply: eq_sum => y; rewrite IH ?mulr1.
Qed.

(* All draws at once: a token for each address of a list, all independent. *)
Definition upd (w : N -> T) n y : N -> T := fun b => if b == n then y else w b.
Fixpoint expect (addresses : seq N) (g : (N -> T) -> R) (w : N -> T) : R :=
  match addresses with
  | [::] => g w
  | n :: ns => sum_of (support n) (fun y => weight n y * expect ns g (upd w n y))
  end.

Definition agree_off n (w w' : N -> T) := forall b, b != n -> w b = w' b.

Lemma run_agree A n (P : prog A) w w' : avoids n P -> agree_off n w w' -> run w P = run w' P.
Proof.
by move=> + ww; elim: P => //= b k IH [bn av]; rewrite (ww b bn) IH.
Qed.

Lemma expect_agree n ns g w w' :
  (forall v v', agree_off n v v' -> g v = g v') -> agree_off n w w' ->
  expect ns g w = expect ns g w'.
Proof.
move=> gg; elim: ns w w' => [|b ns IH] w w' ww /=; first exact: gg.
apply: eq_sum => y; congr (_ * _); apply: IH => c cn.
by rewrite /upd; case: eqP => // _; apply: ww.
Qed.

Lemma expect_fixed n ns g h w : n \notin ns ->
  (forall v, v n = w n -> g v = h v) -> expect ns g w = expect ns h w.
Proof.
elim: ns w => [|b ns IH] w /=; first by move=> _ ->.
rewrite inE negb_or => /andP[nb nns] gh; apply: eq_sum => y; congr (_ * _).
by apply: IH => // v vn; apply: gh; rewrite vn /upd (negbTE nb).
Qed.

Lemma expect_draw n ns (g : T -> (N -> T) -> R) w : ok n -> n \in ns -> uniq ns ->
  (forall y v v', agree_off n v v' -> g y v = g y v') ->
  expect ns (fun v => g (v n) v) w
  = sum_of (support n) (fun y => weight n y * expect ns (g y) w).
Proof.
move=> okn; elim: ns w => //= b ns IH w; rewrite inE => /orP[/eqP <-|nns] /andP[bns uns] gg.
  apply: (@etrans _ _ (sum_of (support n) (fun y => weight n y * expect ns (g y) w))).
    apply: eq_sum => y; congr (_ * _).
    rewrite (@expect_fixed n ns _ (g y)) //.
      by apply: (expect_agree _ (gg y)) => c /negbTE cn; rewrite /upd cn.
    by move=> v ->; rewrite /upd eqxx.
  apply: eq_sum => y; congr (_ * _).
  rewrite -[LHS]mul1r -{1}(weight1 okn) -sum_mulr; apply: eq_sum => y'; congr (_ * _).
  by apply: (expect_agree _ (gg y)) => c /negbTE cn; rewrite /upd cn.
rewrite (eq_sum _ (g := fun y' => sum_of (support n)
   (fun y => weight b y' * (weight n y * expect ns (g y) (upd w b y'))))); last first.
  by move=> y'; rewrite IH // sum_mull.
rewrite sum_swap; apply: eq_sum => y; rewrite -sum_mull; apply: eq_sum => y'.
by rewrite mulrCA.
Qed.

Theorem expect_run A (P : prog A) f ns w : once P -> {subset reads P <= ns} -> uniq ns ->
  all ok ns -> expect ns (fun v => f (run v P)) w = mean (outcomes P) f.
Proof.
move=> + + uns allok; have oktot: forall c, expect ns (fun=> c) w = c.
  move=> c; elim: ns w allok {uns} => //= b ns IH w /andP[okb oks].
  rewrite -[RHS]mul1r -(weight1 okb) -sum_mulr.
  by apply: eq_sum => y; rewrite IH.
elim: P => [a|n k IH] /=.
  by move=> _ _; rewrite oktot /mean /= mul1r addr0.
case=> okn avk oncek sub; rewrite (mean_outcomes_draw n k).
have nns : n \in ns by apply: sub; rewrite mem_head.
rewrite (expect_draw (g := fun y v => f (run v (k y)))) //; last first.
  by move=> y v v' vv; congr f; apply: run_agree vv; apply: avk.
apply: eq_sum_in => y ys; congr (_ * _); apply: IH => // a aread.
by apply: sub; rewrite inE; apply/orP; right; apply/flatten_mapP; exists y.
Qed.

Lemma once_ok A (P : prog A) : once P -> all ok (reads P).
Proof.
elim: P => //= n k IH [okn _ oncek]; rewrite okn /=; apply/allP => b /flatten_mapP[y _ br].
exact: (allP (IH y (oncek y))).
Qed.
(* Two programs that give the same result on the same draws have the same law. *)
Corollary same_runs_same_law A B (P : prog A) (Q : prog B) f g (default : T) : once P -> once Q ->
  (forall w, f (run w P) = g (run w Q)) -> mean (outcomes P) f = mean (outcomes Q) g.
Proof.
move=> oP oQ PQ; pose ns := undup (reads P ++ reads Q).
have okns : all ok ns.
  by apply/allP => n; rewrite mem_undup; apply: allP; rewrite all_cat !once_ok.
have [sP sQ] : {subset reads P <= ns} /\ {subset reads Q <= ns}.
  by split=> n nr; rewrite mem_undup mem_cat nr ?orbT.
rewrite -(expect_run f (fun=> default) oP sP (undup_uniq _) okns).
rewrite -(expect_run g (fun=> default) oQ sQ (undup_uniq _) okns).
have cong w : expect ns (fun v => f (run v P)) w = expect ns (fun v => g (run v Q)) w.
  elim: ns w {okns sP sQ} => [|n ns IH] w /=; first exact: PQ.
  by apply: eq_sum => y; rewrite IH.
exact: cong.
Qed.
End Programs.

Arguments Ret {T N A}.
Arguments Draw {T N A}.
