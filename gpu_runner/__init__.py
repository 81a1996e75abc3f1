"""The identical algorithm on real models, and its benchmarks.

Drafting, ranking, pruning and verification in torch, on real target and draft models. Given the same rows, draws and
coins, every tree and token equals that of `rheo_core`, so what is certified there holds for what runs here.
"""
