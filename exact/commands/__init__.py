"""The commands of `rheo-exact`, one module each; `exact.cli` puts them together."""
