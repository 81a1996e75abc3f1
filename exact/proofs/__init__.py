"""Proofs for every p and q: polynomial identities cell by cell, z3 for every vocabulary, the tree code on unknown laws.

Needs the extra `prove` (sympy, python-flint, z3); `exact` itself never imports this room. `suite.prove` gives the lines
of `rheo-exact prove`; `claims` holds the statements, written once.
"""
