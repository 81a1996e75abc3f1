(* What the template covers: RheoSampling's drafting, for any proxy that the theorems allow,
   with Algorithm 1, with sequential rejection and with vanilla top-K; the chain. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Rheo Require Import laws programs pool tree growth classes verification cycle theorem template.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Judges.
Variables (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T).
Notation node := (node R T).
Notation token := (token blank).
Notation outcome := (outcome R T).
Notation emits := (@emits R T blank).
Notation accepts := (@accepts R T).
Implicit Types (cands : seq node) (u w P : node).
Variables (p tail : seq T -> T -> R).
Variable arrange : node -> seq node -> seq node.
Hypothesis uV : uniq vocab.
Hypothesis p_law : forall c, law vocab (p c).
Hypothesis arrange_perm : forall P l, perm_eq (arrange P l) l.

Definition plain cands := [seq u <- cands | ~~ is_sampled u].

(* Distinct tokens, drawn ones from the tail law. *)
Record lawful P cands : Prop := Lawful {
  lawful_uniq : uniq cands;
  lawful_vocab : all (fun u => token u \in vocab) cands;
  lawful_tokens : uniq (map token cands);
  lawful_sampled : forall u, u \in cands -> is_sampled u ->
    law vocab (tail (tokens P)) /\ tail (tokens P) (token u) != 0 }.

(* A sampled slot comes while only tokens outside the tail's support are there. *)
Record open P cands w : Prop := Open {
  open_law : law vocab (tail (tokens P));
  open_sampled : is_sampled w;
  open_new : forall y, y \in vocab -> tail (tokens P) y != 0 ->
    lawful P (rcons cands (with_token w y)) /\ token (with_token w y) = y;
  open_off : forall u, u \in cands -> tail (tokens P) (token u) = 0 }.

Fixpoint reject_outcomes cands (r : T -> R) : dist R outcome :=
  if cands is u :: us
  then (r (token u), inl u) :: scale (1 - r (token u)) (reject_outcomes us (normalise vocab (without (token u) r)))
  else [seq (r v, inr v) | v <- vocab].

Lemma mean_reject_outcomes cands r f : mean (reject_outcomes cands r) f =
  reject vocab token cands r (fun u => f (inl u)) (fun v => f (inr v)).
Proof.
elim: cands r => [|u us IH] r /=; first by rewrite /mean sum_map.
by rewrite -IH -mean_scale.
Qed.

Lemma mean_first (A : Type) (a : R) (x : A) d (f : A -> R) : mean ((a, x) :: d) f = a * f x + mean d f.
Proof. by []. Qed.

Lemma reject_within cands r : all (fun wo => within vocab cands wo.2) (reject_outcomes cands r).
Proof.
elim: cands r => [|u us IH] r /=; first by apply/allP => _ /mapP[v vV ->].
rewrite mem_head all_map; apply: sub_all (IH _) => wo /=.
by case: (wo.2) => //= x xs; rewrite inE xs orbT.
Qed.

Section Sequential.
Variables (cands : seq node) (r : T -> R).
Hypotheses (lr : law vocab r) (ut : uniq (map token cands)) (cV : all (fun u => token u \in vocab) cands).

Lemma reject_emits v : v \in vocab -> emits (reject_outcomes cands r) v = r v.
Proof. by move=> vV; rewrite /emits mean_reject_outcomes reject_output. Qed.

Lemma reject_accepts u : accepts (reject_outcomes cands r) u = if u \in cands then r (token u) else 0.
Proof.
rewrite /accepts mean_reject_outcomes reject_law //.
rewrite [X in _ + X]sum_ofE big1 ?addr0 => [|v _]; last by rewrite mulr0 if_same.
have inlE x : (inl x == inl u :> outcome) = (x == u) by [].
elim: (cands) (map_uniq ut) => //= x s IH /andP[xs us]; rewrite IH // inE inlE eq_sym.
have [e|_] := eqVneq u x; last by rewrite mulr0 add0r.
by rewrite e mulr1 (negbTE xs) addr0.
Qed.
End Sequential.

(* Algorithm 1 at a node: the coin on the sampled token, then the rest in any order. *)
Definition algorithm_1 P cands : dist R outcome :=
  let others := arrange P (plain cands) in
  if [seq u <- cands | is_sampled u] is u :: _ then
    let a := coin (p (tokens P)) (tail (tokens P)) (token u) in
    (a, inl u) :: scale (1 - a) (reject_outcomes others (residual vocab (p (tokens P)) (tail (tokens P))))
  else reject_outcomes others (p (tokens P)).

(* Sequential rejection: every candidate is tried, sampled or not, with its probability. *)
Definition sequential_rejection P cands : dist R outcome := reject_outcomes (arrange P cands) (p (tokens P)).

(* Vanilla verification: the target's own token, accepted if a candidate has it. *)
Definition vanilla P cands : dist R outcome :=
  [seq (p (tokens P) v, if [seq u <- cands | token u == v] is u :: _ then inl u else inr v) | v <- vocab].

Lemma plain_arranged P cands : uniq (map token (plain cands)) -> all (fun u => token u \in vocab) cands ->
  uniq (map token (arrange P (plain cands))) /\ all (fun u => token u \in vocab) (arrange P (plain cands)).
Proof.
move=> up cV; have ap := arrange_perm P (plain cands).
rewrite (perm_uniq (perm_map token ap)) (perm_all _ ap); split=> //.
by apply/allP => u; rewrite mem_filter => /andP[_ /(allP cV)].
Qed.

Lemma filter_plain P cands : no_sampled cands -> plain cands = cands.
Proof.
move=> /eqP ns; apply/all_filterP/allP => u uc; apply/negP => us.
by have : u \in [seq u <- cands | is_sampled u] by [rewrite mem_filter us uc]; rewrite ns.
Qed.

Lemma lawful_plain P cands : lawful P cands -> uniq (map token (plain cands)).
Proof. by move=> lc; apply: subseq_uniq (lawful_tokens lc); apply: map_subseq; apply: filter_subseq. Qed.

Section Algorithm1.
Variables (P : node) (cands : seq node).
Hypothesis lc : lawful P cands.
Let c := tokens P.

Lemma algorithm_1_unsampled v : no_sampled cands -> v \in vocab -> emits (algorithm_1 P cands) v = p c v.
Proof.
move=> ns vV; have [ut tV] := plain_arranged P (lawful_plain lc) (lawful_vocab lc).
by rewrite /algorithm_1 (eqP ns) reject_emits.
Qed.

Lemma algorithm_1_accepts u : no_sampled cands -> u \in cands -> accepts (algorithm_1 P cands) u = p c (token u).
Proof.
move=> ns uc; have [ut tV] := plain_arranged P (lawful_plain lc) (lawful_vocab lc).
by rewrite /algorithm_1 (eqP ns) reject_accepts // (perm_mem (arrange_perm _ _)) (filter_plain P ns) uc.
Qed.

Variables (s : node) (l : seq node).
Hypothesis sl : [seq u <- cands | is_sampled u] = s :: l.
Let a := coin (p c) (tail c) (token s).
Let r := residual vocab (p c) (tail c).

Lemma sampled_in : s \in cands /\ is_sampled s.
Proof. by have : s \in s :: l by [exact: mem_head]; rewrite -sl mem_filter => /andP[]. Qed.

Lemma sure_or_residual : a = 1 \/ law vocab r.
Proof.
have [sc ss] := sampled_in; have [lt ts] := lawful_sampled lc sc ss.
by apply: residual_law => //; apply: (allP (lawful_vocab lc)).
Qed.

Lemma algorithm_1_sampled v : v \in vocab ->
  emits (algorithm_1 P cands) v = a * (token s == v)%:R + (1 - a) * r v.
Proof.
move=> vV; have [ut tV] := plain_arranged P (lawful_plain lc) (lawful_vocab lc).
rewrite /emits /algorithm_1 sl mean_first mean_scale -/c -/a -/r; congr (_ + _).
have [->|lr] := sure_or_residual; first by rewrite subrr !mul0r.
by have := reject_emits lr ut tV vV => <-.
Qed.

Lemma algorithm_1_sampled_accepts u : accepts (algorithm_1 P cands) u =
  a * (s == u)%:R + (1 - a) * (if u \in plain cands then r (token u) else 0).
Proof.
have [ut tV] := plain_arranged P (lawful_plain lc) (lawful_vocab lc).
rewrite /accepts /algorithm_1 sl mean_first mean_scale -/c -/a -/r; congr (_ + _).
have [->|lr] := sure_or_residual; first by rewrite subrr !mul0r.
by have := reject_accepts lr ut tV u; rewrite (perm_mem (arrange_perm _ _)) => <-.
Qed.
End Algorithm1.

Lemma sampled_rcons cands w : is_sampled w -> no_sampled cands ->
  [seq u <- rcons cands w | is_sampled u] = [:: w].
Proof. by move=> ws /eqP ns; rewrite filter_rcons ws ns. Qed.

Lemma plain_rcons cands w : plain (rcons cands w) = if is_sampled w then plain cands else rcons (plain cands) w.
Proof. by rewrite /plain filter_rcons; case: is_sampled. Qed.

Theorem algorithm_1_verifies : verifier vocab blank p tail algorithm_1 lawful open.
Proof.
split.
- move=> P cands; rewrite /algorithm_1.
  have sub r : all (fun wo => within vocab cands wo.2) (reject_outcomes (arrange P (plain cands)) r).
    apply: sub_all (reject_within _ _) => wo; case: (wo.2) => //= u.
    by rewrite (perm_mem (arrange_perm _ _)) mem_filter => /andP[].
  case E: [seq u <- cands | is_sampled u] => [|s l] //=; rewrite all_map.
  have : s \in s :: l by exact: mem_head.
  by rewrite -E mem_filter => /andP[_ ->]; apply: sub.
- by move=> *; apply: algorithm_1_unsampled.
- by move=> *; apply: algorithm_1_accepts.
- move=> P cands w v lc lw ns wn vV; case E: [seq u <- cands | is_sampled u] => [|s l].
    by rewrite /no_sampled E in ns.
  have E' : [seq u <- rcons cands w | is_sampled u] = s :: l by rewrite filter_rcons (negbTE wn).
  by rewrite (algorithm_1_sampled lw E') // (algorithm_1_sampled lc E).
- move=> P cands w u lc lw ns wn uc; case E: [seq u <- cands | is_sampled u] => [|s l].
    by rewrite /no_sampled E in ns.
  have E' : [seq u <- rcons cands w | is_sampled u] = s :: l by rewrite filter_rcons (negbTE wn).
  rewrite (algorithm_1_sampled_accepts lw E') (algorithm_1_sampled_accepts lc E) plain_rcons (negbTE wn).
  congr (_ + _ * _); rewrite mem_rcons inE; case: eqP => // uw.
  by have := lawful_uniq lw; rewrite rcons_uniq -uw uc.
- move=> P cands w v lc ns [lt ws new off] vV.
  rewrite -[RHS](emission_law uV (p_law _) lt vV); apply: eq_sum_in => y yV.
  have [->|ty] := eqVneq (tail (tokens P) y) 0; first by rewrite !mul0r.
  have [ly ety] := new y yV ty; have wys : is_sampled (with_token w y) by rewrite with_token_child.
  by rewrite (algorithm_1_sampled ly (sampled_rcons wys ns)) // ety.
- move=> P cands w u lc ns [lt ws new off] uc.
  have uV' : token u \in vocab by apply: (allP (lawful_vocab lc)).
  rewrite -[RHS](emission_law uV (p_law _) lt uV'); apply: eq_sum_in => y yV.
  have [->|ty] := eqVneq (tail (tokens P) y) 0; first by rewrite !mul0r.
  have [ly ety] := new y yV ty; have wys : is_sampled (with_token w y) by rewrite with_token_child.
  rewrite (algorithm_1_sampled_accepts ly (sampled_rcons wys ns)) ety plain_rcons wys.
  rewrite (filter_plain P ns) uc; congr (_ * (_ * _ + _)).
  have -> : (y == token u) = false by apply: contraNF ty => /eqP ->; rewrite off.
  by case: eqP => // e; have := lawful_uniq ly; rewrite rcons_uniq e uc.
Qed.

(* Two verifiers that take every candidate alike: with p(c), whatever else is there. *)
Lemma alike_verifies (judge : node -> seq node -> dist R outcome) :
  (forall P cands, all (fun wo => within vocab cands wo.2) (judge P cands)) ->
  (forall P cands v, lawful P cands -> v \in vocab -> emits (judge P cands) v = p (tokens P) v) ->
  (forall P cands u, lawful P cands -> u \in cands -> accepts (judge P cands) u = p (tokens P) (token u)) ->
  verifier vocab blank p tail judge lawful open.
Proof.
move=> ins em ac; split=> //.
- by move=> P cands v lc _ vV; apply: em.
- by move=> P cands u lc _ uc; apply: ac.
- by move=> P cands w v lc lw _ _ vV; rewrite !em.
- by move=> P cands w u lc lw _ _ uc; rewrite !ac // mem_rcons inE uc orbT.
- move=> P cands w v lc _ [lt ws new off] vV; rewrite -[RHS]mul1r -(law_sum lt) -sum_mulr.
  apply: eq_sum_in => y yV; have [->|ty] := eqVneq (tail (tokens P) y) 0; first by rewrite !mul0r.
  by have [ly _] := new y yV ty; rewrite em.
- move=> P cands w u lc _ [lt ws new off] uc; rewrite -[RHS]mul1r -(law_sum lt) -sum_mulr.
  apply: eq_sum_in => y yV; have [->|ty] := eqVneq (tail (tokens P) y) 0; first by rewrite !mul0r.
  by have [ly _] := new y yV ty; rewrite ac // mem_rcons inE uc orbT.
Qed.

Lemma arranged P cands : lawful P cands -> uniq (map token (arrange P cands))
  /\ all (fun u => token u \in vocab) (arrange P cands).
Proof.
move=> lc; have ap := arrange_perm P cands.
by rewrite (perm_uniq (perm_map token ap)) (perm_all _ ap) (lawful_tokens lc) (lawful_vocab lc).
Qed.

Theorem sequential_rejection_verifies : verifier vocab blank p tail sequential_rejection lawful open.
Proof.
apply: alike_verifies => [P cands|P cands v lc vV|P cands u lc uc]; rewrite /sequential_rejection.
- apply: sub_all (reject_within _ _) => wo; case: (wo.2) => //= u.
  by rewrite (perm_mem (arrange_perm _ _)).
- by have [ut tV] := arranged lc; rewrite reject_emits.
- by have [ut tV] := arranged lc; rewrite reject_accepts // (perm_mem (arrange_perm _ _)) uc.
Qed.

Lemma vanilla_outcome cands v : emitted blank (if [seq u <- cands | token u == v] is u :: _ then inl u else inr v) = v.
Proof.
case E: [seq u <- _ | _] => [|u l] //=; have : u \in u :: l by exact: mem_head.
by rewrite -E mem_filter => /andP[/eqP].
Qed.

Theorem vanilla_verifies : verifier vocab blank p tail vanilla lawful open.
Proof.
apply: alike_verifies => [P cands|P cands v lc vV|P cands u lc uc].
- apply/allP => _ /mapP[v vV ->] /=; case E: [seq u <- _ | _] => [|u l] //=.
  by have : u \in u :: l by [exact: mem_head]; rewrite -E mem_filter => /andP[].
- rewrite /emits /mean /vanilla sum_map -[RHS](sum_pick (fun x => p (tokens P) x) uV vV).
  by apply: eq_sum => x; rewrite /= vanilla_outcome mulrC eq_sym.
have tV := allP (lawful_vocab lc) u uc.
rewrite /accepts /mean /vanilla sum_map -[RHS](sum_pick (fun x => p (tokens P) x) uV tV).
apply: eq_sum_in => x xV /=; rewrite mulrC; congr (_%:R * _).
have one : [seq z <- cands | token z == token u] = [:: u].
  have -> : [seq z <- cands | token z == token u] = [seq z <- cands | z == u].
    apply: eq_in_filter => z zc; apply/eqP/eqP => [e|-> //].
    by apply: (uniq_map_inj (lawful_tokens lc)).
  by rewrite filter_pred1_uniq // (lawful_uniq lc).
have [<-|ux] := eqVneq (token u) x; first by rewrite one eqxx.
case E: [seq z <- _ | _] => [|z l] //.
have : z \in z :: l by exact: mem_head.
rewrite -E mem_filter => /andP[/eqP zx _]; have zu : z != u by apply: contraNneq ux => <-; rewrite zx.
by have -> : (inl z == inl u :> outcome) = (z == u) by []; rewrite (negbTE zu).
Qed.
End Judges.

(* ---- RheoSampling's drafting, with any verifier that meets V1 and V2 ---- *)
Section Drafting.
Variables (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T).
Variables (p q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).
Notation node := (node R T).
Implicit Types (kept : seq node) (w P Q : node).
Notation tail := (tail vocab q s m).
Notation next := (next vocab blank q s m K D proxy).
Notation grow := (grow vocab blank q s m K D proxy).
Notation proper := (proper vocab blank q s m K proxy).
Notation layered := (layered vocab blank q s m K D proxy (@rank R T)).
Notation law_of := (outcomes (weight vocab q s m) (choices vocab q s m)).
Notation legal := (lawful vocab blank tail).
Notation open := (open vocab blank tail).
Hypothesis A : assumptions vocab blank q s m K proxy.
Hypothesis p_law : forall c, law vocab (p c).

Lemma candidates_tokens kept P : proper kept -> uniq (map (token blank) (candidates_of kept P)).
Proof.
move=> pk; have uc : uniq (candidates_of kept P) by rewrite filter_uniq // (kept_uniq pk).
have inpool u : u \in candidates_of kept P -> u \in children vocab blank q s m K proxy (drawn blank kept P) P.
  by rewrite mem_filter => /andP[uP uk]; apply: (kept_pool pk).
rewrite map_inj_in_uniq //; case E: (drawn blank kept P) => [y|].
  have [_ ys] := kept_drawn pk E; rewrite E in inpool => u v /inpool ui /inpool vi.
  by apply: (pool_token_inj A _ ui vi) => _; apply: support_rest ys.
have [y0 [yr vis]] := witness A P pk; rewrite E in vis inpool.
have here u : u \in candidates_of kept P -> u \in children vocab blank q s m K proxy (Some y0) P.
  move=> uc'; apply: vis; first exact: inpool.
  by move: uc'; rewrite mem_filter => /andP[uP uk]; apply/negP => us; apply: (drawn_none E uk uP us).
by move=> u v /here ui /here vi; apply: (pool_token_inj A yr ui vi).
Qed.

Lemma proper_lawful kept P : proper kept -> legal P (candidates_of kept P).
Proof.
move=> pk; split.
- by rewrite filter_uniq // (kept_uniq pk).
- apply/allP => u uc; have [us|us] := boolP (is_sampled u).
    by have [] := sampled_kept A pk uc us.
  by apply: (allP (others_vocab A P pk)); rewrite mem_filter us.
- exact: candidates_tokens.
- by move=> u uc us; have [? _ ?] := sampled_kept A pk uc us.
Qed.

Lemma proper_legal_lists : legal_lists vocab blank tail legal open.
Proof. by split=> // [P cands|P cands|P cands w]; case. Qed.

Lemma tail_choices c y : tail c y != 0 -> y \in support vocab q s m c.
Proof.
rewrite /pool.tail mem_filter; case: ifP => [yr n0|]; last by rewrite eqxx.
have sy : 0 <= s c y := law_ge0 (s_law A c) (rest_vocab yr).
by rewrite lt_def sy !andbT; apply: contra n0 => /eqP ->; rewrite mul0r.
Qed.

Theorem rheo_drafting : drafting vocab blank tail next legal open proper.
Proof.
split; first exact: proper_root.
- by move=> kept P; apply: proper_lawful.
- move=> kept w pk nx wn; have [Q [wQ -> wk Qk wvis]] := next_facts nx.
  have pw := proper_plain pk wQ wk Qk wvis wn.
  split=> //; split=> //; first exact: fresh_leaf pk wk wQ.
  by have := proper_lawful Q pw; rewrite candidates_rcons wQ.
move=> kept w pk nx ws; have [Q [wQ be wk Qk wvis]] := next_facts nx; rewrite be.
have [dn ex we] := sampled_entry wvis ws.
have grown y : y \in vocab -> tail (tokens Q) y != 0 ->
    [/\ is_child Q (with_token w y), with_token w y \notin kept, token blank (with_token w y) = y &
        proper (rcons kept (with_token w y))].
  move=> yV ty; have [nQ nk _ ny] := sampled_new wvis ws y.
  by split=> //; apply: (proper_sampled A pk Qk wvis ws); apply: tail_choices.
have legal_new y : y \in vocab -> tail (tokens Q) y != 0 -> legal Q (rcons (candidates_of kept Q) (with_token w y)).
  move=> yV ty; have [nQ _ _ pn] := grown y yV ty.
  by have := proper_lawful Q pn; rewrite candidates_rcons nQ.
split.
- by apply/eqP; apply: none_sampled wvis ws.
- split=> //; first by apply: tail_law ex; [apply: uniq_vocab A|apply/law_ge0/(s_law A)].
    by move=> y yV ty; have [_ _ ? _] := grown y yV ty; split=> //; apply: legal_new.
  move=> u uc; apply: (plain_lead A pk wvis ws); rewrite mem_filter uc andbT; apply/negP => us.
  have := none_sampled wvis ws => no.
  by have : u \in [seq v <- candidates_of kept Q | is_sampled v] by [rewrite mem_filter us uc]; rewrite no.
move=> y yV ty; have [nQ nk ny pn] := grown y yV ty; split=> //; split=> //; last exact: legal_new.
exact: fresh_leaf pk nk nQ.
Qed.

Lemma mean_draft n kept f : mean (draft vocab tail next n kept) f = mean (law_of (grow n kept)) f.
Proof.
elim: n kept => [|n IH] kept //=; case: (next kept) => [w|] //; case: ifP => _ //.
rewrite mean_bind (mean_outcomes_draw (weight vocab q s m) (choices vocab q s m)) {1}/mean sum_map.
rewrite -sum_tail; [|exact: uniq_vocab A|exact/law_ge0/(s_law A)].
by apply: eq_sum => y /=; rewrite IH.
Qed.

(* The verdict for every target: drafting as in the paper, any proxy that the theorems allow,
   and any verifier that meets V1 and V2 on what this drafting can leave. *)
Variable judge : node -> seq node -> dist R (outcome R T).
Hypothesis V : verifier vocab blank p tail judge legal open.

Definition templated_cycle budget : dist R (seq T) :=
  bind (law_of layered) (fun U => walk vocab p judge D (prune (@rank R T) budget U) [::]).

Theorem templated_cycle_lossless budget (text : seq T) : all (mem vocab) text ->
  mean (templated_cycle budget) (begins p [::] text) = text_probability p [::] text.
Proof.
move=> wV; have gh e : begins p [::] text e = sum_of vocab (fun v => p e v * begins p [::] text (rcons e v)).
  exact: (begins_harmonic (uniq_vocab A) p_law [::] e wV).
have := template_cycle (uniq_vocab A) proper_legal_lists V rheo_drafting gh D budget.
rewrite begins_nothing => <-; rewrite /templated_cycle !mean_bind mean_draft.
by rewrite (growth_law D A budget (fun t => mean (walk vocab p judge D t [::]) (begins p [::] text))).
Qed.
End Drafting.

(* Each verifier on the paper's drafting; one proxy for all. *)
Section Instances.
Variables (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T).
Variables (p q s : seq T -> T -> R) (m K D : nat) (proxy : seq T -> T -> R).
Variable arrange : node R T -> seq (node R T) -> seq (node R T).
Notation tail := (tail vocab q s m).
Notation cycle_of := (templated_cycle vocab blank p q s m K D proxy).
Hypothesis A : assumptions vocab blank q s m K proxy.
Hypothesis p_law : forall c, law vocab (p c).
Hypothesis arrange_perm : forall P l, perm_eq (arrange P l) l.

Theorem algorithm_1_lossless budget w : all (mem vocab) w ->
  mean (cycle_of (algorithm_1 vocab blank p tail arrange) budget) (begins p [::] w) = text_probability p [::] w.
Proof. by apply: templated_cycle_lossless => //; apply: algorithm_1_verifies => //; apply: uniq_vocab A. Qed.

Theorem sequential_rejection_lossless budget w : all (mem vocab) w ->
  mean (cycle_of (sequential_rejection vocab blank p arrange) budget) (begins p [::] w) = text_probability p [::] w.
Proof. by apply: templated_cycle_lossless => //; apply: sequential_rejection_verifies => //; apply: uniq_vocab A. Qed.

Theorem vanilla_lossless budget w : all (mem vocab) w ->
  mean (cycle_of (vanilla vocab blank p) budget) (begins p [::] w) = text_probability p [::] w.
Proof. by apply: templated_cycle_lossless => //; apply: vanilla_verifies => //; apply: uniq_vocab A. Qed.
End Instances.

(* The chain: no lead, one sampled token a level, as deep as the budget. *)
Corollary chain_lossless (R : realFieldType) (T : eqType) (vocab : seq T) (blank : T) (p q s : seq T -> T -> R) D w :
  uniq vocab -> (forall c, law vocab (p c)) -> (forall c, law vocab (q c)) -> (forall c, law vocab (s c)) ->
  all (mem vocab) w ->
  mean (templated_cycle vocab blank p q s 0 1 D (rheo_proxy vocab blank q 0)
      (algorithm_1 vocab blank p (tail vocab q s 0) (fun=> id)) D) (begins p [::] w) = text_probability p [::] w.
Proof. by move=> uV pl ql sl wV; apply: algorithm_1_lossless => //; apply: rheo_assumptions. Qed.
