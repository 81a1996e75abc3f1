(* Coq's own canonical rationals as a real field: binary integers, so that everything in
   this folder runs on them (vm_compute), and every theorem here speaks of what ran. *)
From Coq Require Import QArith Qcanon ZArith Lia.
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.

Definition Qc_eqb (x y : Qc) : bool := Qeq_bool x y.

Lemma Qc_eqP : Equality.axiom Qc_eqb.
Proof.
move=> x y; apply: (iffP idP) => [/Qeq_bool_iff|->]; first exact: Qc_is_canon.
by apply/Qeq_bool_iff.
Qed.
Canonical Qc_eqType := EqType Qc (EqMixin Qc_eqP).

Definition Qc_code (x : Qc) : nat * nat * nat :=
  (Z.to_nat (Qnum x), Z.to_nat (Z.opp (Qnum x)), Pos.to_nat (Qden x)).
Definition Qc_decode (c : nat * nat * nat) : Qc :=
  Q2Qc (Qmake (Z.sub (Z.of_nat c.1.1) (Z.of_nat c.1.2)) (Pos.of_nat c.2)).

Lemma Qc_codeK : cancel Qc_code Qc_decode.
Proof.
case=> [[n d] c]; rewrite /Qc_code /Qc_decode /= Pos2Nat.id.
have -> : Z.sub (Z.of_nat (Z.to_nat n)) (Z.of_nat (Z.to_nat (Z.opp n))) = n by lia.
by apply: Qc_is_canon; apply: Qred_correct.
Qed.
Canonical Qc_choiceType := ChoiceType Qc (CanChoiceMixin Qc_codeK).

Lemma Qc_addA x y z : Qcplus x (Qcplus y z) = Qcplus (Qcplus x y) z. Proof. exact: Qcplus_assoc. Qed.
Lemma Qc_addN x : Qcplus (Qcopp x) x = 0%Qc. Proof. by rewrite Qcplus_comm Qcplus_opp_r. Qed.
Definition Qc_zmodMixin := ZmodMixin Qc_addA Qcplus_comm Qcplus_0_l Qc_addN.
Canonical Qc_zmodType := ZmodType Qc Qc_zmodMixin.

Lemma Qc_neq01 : is_true (1%Qc != 0%Qc). Proof. by []. Qed.
Definition Qc_ringMixin := ComRingMixin Qcmult_assoc Qcmult_comm Qcmult_1_l Qcmult_plus_distr_l Qc_neq01.
Canonical Qc_ringType := RingType Qc Qc_ringMixin.
Canonical Qc_comRingType := ComRingType Qc Qcmult_comm.

Lemma Qc_mulV (x : Qc) : is_true (x != 0%R) -> (Qcinv x * x = 1)%R.
Proof. by move/eqP => x0; apply: Qcmult_inv_l. Qed.
Lemma Qc_inv0 : Qcinv 0%R = 0%R :> Qc. Proof. exact: Qc_is_canon. Qed.
Definition Qc_unitMixin := FieldUnitMixin Qc_mulV Qc_inv0.
Canonical Qc_unitRingType := UnitRingType Qc Qc_unitMixin.
Canonical Qc_comUnitRingType := [comUnitRingType of Qc].
Fact Qc_field_axiom : GRing.Field.mixin_of Qc_unitRingType. Proof. exact. Qed.
Canonical Qc_idomainType := IdomainType Qc (FieldIdomainMixin Qc_field_axiom).
Canonical Qc_fieldType := FieldType Qc Qc_field_axiom.

Definition Qc_leb (x y : Qc) : bool := Qle_bool x y.
Definition Qc_ltb (x y : Qc) : bool := ~~ Qle_bool y x.
Definition Qc_norm (x : Qc) : Qc := if Qle_bool 0 x then x else Qcopp x.

Lemma Qc_leP (x y : Qc) : reflect (x <= y)%Qc (Qc_leb x y).
Proof. by apply: (iffP idP) => h; apply/Qle_bool_iff. Qed.

Lemma Qc_le0_add (x y : Qc) : is_true (Qc_leb 0%R x) -> is_true (Qc_leb 0%R y) -> is_true (Qc_leb 0%R (x + y)%R).
Proof. by move=> /Qc_leP x0 /Qc_leP y0; apply/Qc_leP; have := Qcplus_le_compat _ _ _ _ x0 y0; rewrite Qcplus_0_l. Qed.
Lemma Qc_le0_mul (x y : Qc) : is_true (Qc_leb 0%R x) -> is_true (Qc_leb 0%R y) -> is_true (Qc_leb 0%R (x * y)%R).
Proof.
move=> /Qc_leP x0 /Qc_leP y0; apply/Qc_leP.
by have := Qcmult_le_compat_r _ _ _ x0 y0; rewrite Qcmult_0_l.
Qed.
Lemma Qc_le0_anti (x : Qc) : is_true (Qc_leb 0%R x) -> is_true (Qc_leb x 0%R) -> x = 0%R.
Proof. by move=> /Qc_leP a /Qc_leP b; apply: Qcle_antisym. Qed.
Lemma Qc_sub_ge0 (x y : Qc) : Qc_leb 0%R (y - x)%R = Qc_leb x y.
Proof.
apply/Qc_leP/Qc_leP => h; first exact: (proj2 (Qcle_minus_iff x y) h).
exact: (proj1 (Qcle_minus_iff x y) h).
Qed.
Lemma Qc_le0_total (x : Qc) : is_true (Qc_leb 0%R x || Qc_leb x 0%R).
Proof.
by have [/Qclt_le_weak/Qc_leP ->|/Qc_leP ->] := Qclt_le_dec 0 x; rewrite ?orbT.
Qed.
Lemma Qc_normN (x : Qc) : Qc_norm (- x)%R = Qc_norm x.
Proof.
have swap : Qc_leb 0%R (- x)%R = Qc_leb x 0%R by rewrite -[in RHS]Qc_sub_ge0 sub0r.
rewrite /Qc_norm -/(Qc_leb 0%R (- x)%R) -/(Qc_leb 0%R x) swap.
have := @Qc_le0_anti x; have := Qc_le0_total x.
case: (Qc_leb 0%R x); case: (Qc_leb x 0%R) => // _ h; last exact: opprK.
by rewrite (h isT isT) oppr0.
Qed.
Lemma Qc_ge0_norm (x : Qc) : is_true (Qc_leb 0%R x) -> Qc_norm x = x.
Proof. by rewrite /Qc_norm -/(Qc_leb 0%R x) => ->. Qed.
Lemma Qc_lt_def (x y : Qc) : Qc_ltb x y = (y != x) && Qc_leb x y.
Proof.
rewrite /Qc_ltb -/(Qc_leb y x); apply/idP/andP => [/negP nle|[ne /Qc_leP le]].
  have lt : (x < y)%Qc by have [|/Qc_leP] := Qclt_le_dec x y.
  split; last exact/Qc_leP/Qclt_le_weak.
  by apply/eqP => e; apply: nle; rewrite e; apply/Qc_leP/Qcle_refl.
by apply/negP => /Qc_leP le'; move/eqP: ne; apply; apply: Qcle_antisym.
Qed.

Definition Qc_leMixin : realLeMixin Qc_idomainType :=
  RealLeMixin Qc_le0_add Qc_le0_mul Qc_le0_anti Qc_sub_ge0 Qc_le0_total Qc_normN Qc_ge0_norm Qc_lt_def.

Lemma Qc_le_total : total Qc_leb.
Proof.
move=> x y; case: (Qclt_le_dec x y) => [/Qclt_le_weak|] /Qc_leP -> //.
by rewrite orbT.
Qed.
Canonical Qc_porderType := POrderType ring_display Qc Qc_leMixin.
Canonical Qc_latticeType := LatticeType Qc Qc_leMixin.
Canonical Qc_distrLatticeType := DistrLatticeType Qc Qc_leMixin.
Canonical Qc_orderType := OrderType Qc Qc_le_total.
Canonical Qc_numDomainType := NumDomainType Qc Qc_leMixin.
Canonical Qc_normedZmodType := NormedZmodType Qc Qc Qc_leMixin.
Canonical Qc_numFieldType := [numFieldType of Qc].
Canonical Qc_realDomainType := [realDomainType of Qc].
Canonical Qc_realFieldType := [realFieldType of Qc].
