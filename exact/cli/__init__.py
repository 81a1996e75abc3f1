"""The commands of `rheo-exact`, one module each; `exact.cli.main` puts them together."""
