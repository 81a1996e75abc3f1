"""Draft models: a causal LM, the target itself without some layers, an EAGLE-3 head."""
