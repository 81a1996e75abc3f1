"""`python -m gpu_runner`, which is how torchrun starts it."""

from gpu_runner.cli.main import main

if __name__ == "__main__":
    main()
