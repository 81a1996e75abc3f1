(* Reads cases, runs the extracted program on them, prints what it gives. A case is numbers
   apart by blanks: V m K D R, then the tables of target, scores and sampling law. A table is
   the number of listed contexts, each its length, its tokens and a row, then the row of all
   others. A row is V fractions, numerator and denominator. *)
let word () = Scanf.scanf " %s" (fun s -> s)
let count () = int_of_string (word ())
let rec times n f = if n = 0 then [] else let x = f () in x :: times (n - 1) f
let fraction () =
  let n = Big_int_Z.big_int_of_string (word ()) in
  Rheo.make_fraction n (Big_int_Z.big_int_of_string (word ()))
let row v = times v fraction
let table v =
  let listed = times (count ()) (fun () -> let tokens = times (count ()) count in (tokens, row v)) in
  (listed, row v)
let big = Big_int_Z.string_of_big_int
let ints tokens = String.concat "," (List.map string_of_int tokens)
let () =
  let cases = count () in
  for _ = 1 to cases do
    let v = count () in let m = count () in let k = count () in let d = count () in let r = count () in
    let p = table v in let q = table v in let s = table v in
    (* Obj.magic: the extracted program types tokens as elements of any type with equality. *)
    let law : ((Z.t * Z.t) * int list) list = Obj.magic (Rheo.run_text v m k d r (Obj.magic p) (Obj.magic q) (Obj.magic s)) in
    List.iter (fun ((n, d), text) -> Printf.printf "text %s/%s %s\n" (big n) (big d) (ints text)) law;
    let classes : ((Z.t * Z.t) * (((int list * int) * int) * (Z.t * Z.t)) list) list =
      Obj.magic (Rheo.run_classes v m k d r (Obj.magic q) (Obj.magic s)) in
    List.iter (fun ((n, d), nodes) ->
      Printf.printf "class %s/%s" (big n) (big d);
      List.iter (fun (((slots, kind), token), (a, b)) ->
        Printf.printf " %s;%d;%d;%s/%s" (ints slots) kind token (big a) (big b)) nodes;
      print_newline ()) classes;
    print_endline "end"
  done
