"""The script for a CUDA machine by its short name, `python -m tests.gpu_runner.on_device`: `device/on_device.py`."""

import sys

from tests.gpu_runner.device.on_device import main

if __name__ == "__main__":
    sys.exit(main())
