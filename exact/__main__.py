"""`python -m exact`, which is `rheo-exact`."""

from exact.cli.main import main

main()
