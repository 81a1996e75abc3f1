"""The arithmetic of the proofs: the cells into which pairs of rows fall, and the two libraries of polynomials."""
