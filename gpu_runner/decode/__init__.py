"""Drafting and verification on a device: the reference algorithm in torch."""
