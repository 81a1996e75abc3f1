"""The commands of `rheo-montecarlo`, a module each."""
