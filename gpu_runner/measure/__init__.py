"""Acceptance and speed of methods on prompts, with their intervals."""
