"""One module a command of `gpu_runner`."""
