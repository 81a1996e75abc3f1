(* Running the definitions that the theorems are about, on rationals: the classes with
   their probabilities, and the law of the text of one cycle or several. Rankings and
   proxies other than the paper's can be put in: that is how wrong ones are refuted. *)
From Coq Require Import QArith Qcanon.
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes verification cycle theorem rates rationals.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* A model: a row for each listed prefix, and one for all others. *)
Definition table := (seq (seq nat * seq Qc) * seq Qc)%type.
Definition model (t : table) (c : seq nat) (v : nat) : Qc :=
  nth 0%R (head t.2 [seq row.2 | row <- t.1 & row.1 == c]) v.

Definition fraction (n : Z) (d : positive) : Qc := Q2Qc (Qmake n d).
Definition show (x : Qc) := (Qnum x, Qden x).

(* Equal outcomes put together. *)
Definition merge (A : eqType) (d : dist [realFieldType of Qc] A) :=
  [seq (show (mean d (fun x => if x == a then 1%R else 0%R)), a) | a <- undup (map snd d)].

Section Run.
Variables (V m K D R : nat) (p q s : seq nat -> nat -> Qc).
Let vocab := iota 0 V.
Notation node := (node [realFieldType of Qc] [eqType of nat]).
Definition paper_proxy := rheo_proxy vocab 0%N q m.
Definition paper_rank : rel node := @rank [realFieldType of Qc] [eqType of nat].
Definition in_slot_order (c : seq nat) (l : seq node) := l.

Definition show_node (v : node) :=
  (slots v, if v is e :: _ then kind_of e else 3%N, token 0%N v, show (score v)).

(* The classes of appendix C.3, grown. *)
Definition grown_classes :=
  [seq (show wt.1, map show_node wt.2)
  | wt <- outcomes (weight vocab q s m) (choices vocab q s m) (grow vocab 0%N q s m K D paper_proxy R [::])].

(* The unpruned trees, pruned by any ranking, under any proxy. *)
Definition pruned_law (proxy : seq nat -> nat -> Qc) (ranking : rel node) :=
  [seq (wt.1, prune ranking R wt.2)
  | wt <- outcomes (weight vocab q s m) (choices vocab q s m) (layered vocab 0%N q s m K D proxy ranking)].
Definition layered_classes :=
  [seq (c.1, map show_node c.2) | c <- merge (pruned_law paper_proxy paper_rank)].

Definition text_law proxy ranking : dist [realFieldType of Qc] [eqType of seq nat] :=
  bind (pruned_law proxy ranking) (fun t => verify vocab 0%N p q s m in_slot_order D t [::]).
Definition text := merge (text_law paper_proxy paper_rank).

(* The same on grown trees, which are far fewer: what the extracted program runs. *)
Definition grown_text : dist [realFieldType of Qc] (seq nat) :=
  bind (outcomes (weight vocab q s m) (choices vocab q s m) (grow vocab 0%N q s m K D paper_proxy R [::]))
    (fun t => verify vocab 0%N p q s m in_slot_order D t [::]).

(* Texts of n cycles: what the theorem about cycles speaks of, run. *)
Definition texts n := merge (cycles vocab 0%N p q s m K D R paper_proxy in_slot_order n [::]).

(* Theorem 3's acceptance rate of the root's pool with n candidates, sampled one among them. *)
Definition layer_rate n := show (acceptance (order vocab q [::]) (p [::]) (tail vocab q s m [::]) m n.-1).

(* text is the law of the theorem's cycle, proved by computation rules alone but for one
   step: a law of pruned trees is pruned outcome by outcome. *)
Lemma mean_text_law g : mean (text_law paper_proxy paper_rank) g
  = mean (cycle vocab 0%N p q s m K D paper_proxy in_slot_order R) g.
Proof.
by rewrite /text_law /cycle !mean_bind /pruned_law /mean sum_map.
Qed.

Lemma mean_grown_text g : mean grown_text g
  = mean (grown_cycle vocab 0%N p q s m K D paper_proxy in_slot_order R) g.
Proof. by []. Qed.
End Run.
