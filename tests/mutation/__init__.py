"""Are our own tests able to see a fault in the verifier or in the tree code?

`python -m tests.mutation` changes one operator, comparison, constant or line of the reference implementation at a time
and runs the certificate (`pytest -m exact`) on each changed program. A mutant that survives must be listed with the
reason why it changes no law and no acceptance.
"""
