"""Training of EAGLE-3 heads, so that a draft exists for any supported target without a hub."""
