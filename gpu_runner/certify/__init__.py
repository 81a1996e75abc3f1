"""The whole engine walked exhaustively on tiny models, and its identity with the reference."""
